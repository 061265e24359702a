#include "app/report.hpp"

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "app/run_facts.hpp"
#include "files/output_file.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

/// "shapes-20260101-120000" of "runs/shapes-20260101-120000/".
std::string RunName(const std::string& run_directory) {
  std::filesystem::path path = std::filesystem::path(run_directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

/// One step shows the schedule, and keeps the page small however long the run was.
std::string LastStepOf(const OpenedTrace& run) {
  const std::vector<StepSpan> spans = {run.steps.all().back()};
  return TimelineJson(run, spans, MakeTimeline(run.index, spans, Stretch::kSteps));
}

PageRun PageRunOf(const std::string& run_directory) {
  PageRun page = CurvesOf(run_directory);
  try {
    const OpenedTrace run(run_directory);
    if (run.steps.all().empty()) {
      page.without_timeline = "no timeline: the trace holds no complete training step";
    } else {
      page.timeline_json = LastStepOf(run);
    }
  } catch (const std::runtime_error& e) {
    page.without_timeline = std::string("no timeline: ") + e.what();
  }
  return page;
}

}  // namespace

PageRun CurvesOf(const std::string& run_directory) {
  PageRun page;
  page.name = RunName(run_directory);
  const RunMetrics metrics = ReadMetrics(run_directory);
  page.series_json = SeriesJson(metrics);
  page.facts = FactsOf(run_directory, metrics);
  return page;
}

std::string TimelineJson(const OpenedTrace& run, const std::vector<StepSpan>& spans,
                         const Timeline& timeline) {
  const Summary summary = Summarize(run.index, spans);
  return PageTimelineJson(run.index, timeline, ToJson(StageTable(summary, run.index)));
}

std::string ReportPage(const std::vector<std::string>& run_directories) {
  std::vector<PageRun> runs;
  for (const std::string& directory : run_directories) runs.push_back(PageRunOf(directory));
  std::ostringstream page;
  WritePage(page, PageKind::kReport, runs);
  return std::move(page).str();
}

void WritePageFile(const std::string& path, const std::string& content) {
  std::error_code ignored;
  const auto there = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    // Never replace a device, a link or a folder.
    throw std::runtime_error(path + ": exists and is not a regular file");
  }
  ReplaceFile(path, content);
}

}  // namespace troupe
