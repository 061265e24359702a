#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>

#include "app/report.hpp"
#include "cli/trace/trace.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {
namespace {

struct TraceExportArguments {
  std::string run;
  std::string steps;
  std::string format = "perfetto";
  std::string out;
};

std::string ContentOf(const OpenedTrace& run, const Timeline& timeline, const std::string& format,
                      const std::vector<StepSpan>& spans) {
  std::ostringstream content;
  if (format == "perfetto") {
    WritePerfetto(content, run.index, timeline);
  } else {
    PageRun page = CurvesOf(run.directory);
    page.timeline_json = TimelineJson(run, spans, timeline);
    WritePage(content, PageKind::kTimeline, {page});
  }
  return std::move(content).str();
}

/// Counts the messages of the window by their outcome.
std::string Account(const Timeline& timeline, const std::string& steps) {
  std::vector<std::string> reasons;
  const auto add = [&](std::int64_t count, const char* reason) {
    if (count > 0) reasons.push_back(std::to_string(count) + reason);
  };
  add(timeline.unhandled, " never handled");
  add(timeline.nameless, " handled by an actor without a name in the trace");
  const auto arrows = static_cast<std::int64_t>(timeline.arrows.size());
  std::string text = std::to_string(timeline.messages()) + " messages in the window, " +
                     std::to_string(arrows) + " arrows, " +
                     std::to_string(timeline.messages() - arrows) + " without" +
                     (reasons.empty() ? "" : " (" + Listed(reasons) + ")") + '\n';
  if (steps.empty()) return text;
  return text + std::to_string(timeline.of_steps) + " of the messages are of " +
         (steps.find('-') == std::string::npos ? "step " : "steps ") + steps + ", " +
         std::to_string(timeline.messages() - timeline.of_steps) +
         " of other rounds, sent or handled meanwhile\n";
}

int ExportTrace(const TraceExportArguments& arguments) {
  const std::optional<StepRange> range = RangeOf(arguments.steps);
  const OpenedTrace run(arguments.run);
  const std::vector<StepSpan> spans = run.steps.In(range);
  const Timeline timeline =
      MakeTimeline(run.index, spans, range ? Stretch::kSteps : Stretch::kWhole);
  const std::string content = ContentOf(run, timeline, arguments.format, spans);
  std::string path = arguments.out;
  if (path.empty()) {
    path = run.directory + "/timeline" + (range ? "-" + arguments.steps : "") +
           (arguments.format == "html" ? ".html" : ".pftrace");
  }
  WritePageFile(path, content);
  const auto is_work = [](const LaneSlice& slice) { return slice.work >= 0; };
  const auto is_open = [&](const LaneSlice& slice) {
    return slice.work < 0 && run.index.message(slice.message).end_ns < 0;
  };
  const auto work = std::ranges::count_if(timeline.slices, is_work);
  const auto open = std::ranges::count_if(timeline.slices, is_open);
  std::cout << path << ": " << timeline.slices.size() << " slices (" << work << " of work, "
            << std::ssize(timeline.slices) - work << " of handled messages), "
            << timeline.arrows.size() << " arrows, "
            << Bytes(static_cast<std::int64_t>(content.size())) << '\n';
  if (open > 0) {
    std::cout << open << (open == 1 ? " slice ends" : " slices end")
              << " where the trace does: the handler had not returned\n";
  }
  std::cout << Account(timeline, arguments.steps);
  std::cout << DescribeGaps(run.trace);
  return kExitDone;
}

}  // namespace

void AddTraceExport(CLI::App& trace, Command& command) {
  auto arguments = std::make_shared<TraceExportArguments>();
  auto* verb = AddRunVerb(
      trace, "export",
      "Write a timeline: the work of every device, the handlers of every actor, an arrow for\n"
      "every message, memory, microbatches in flight and credits. perfetto is for\n"
      "ui.perfetto.dev (Open trace file); html is a self-contained page, with the training\n"
      "curves below the timeline (troupe report puts them first).",
      arguments->run);
  AddSteps(*verb, arguments->steps);
  AddChoice(*verb, "--format", {"perfetto", "html"}, arguments->format);
  verb->add_option("--out", arguments->out,
                   "file to write (default: RUN/timeline-A-B.pftrace or .html)")
      ->type_name("FILE");
  SetAction(*verb, command, [arguments] { return ExportTrace(*arguments); });
}

}  // namespace troupe
