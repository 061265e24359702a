#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "files/output_file.hpp"
#include "cli/trace/trace.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/lint.hpp"

namespace troupe {
namespace {

struct ExportArguments {
  std::string run;
  std::string steps;
  std::string format = "perfetto";
  std::string out;
};

const char* SuffixOf(const std::string& format) {
  return format == "html" ? ".html" : format == "chrome" ? ".json" : ".pftrace";
}

/// [[step, loss], ...] of the run's metrics.
std::string LossesOf(const std::string& run_directory) {
  const std::string path = run_directory + "/metrics.jsonl";
  std::error_code ignored;
  nlohmann::json losses = nlohmann::json::array();
  if (!std::filesystem::is_regular_file(path, ignored)) return losses.dump();
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.value("kind", "") != "step") continue;
    if (!json.contains("loss") || !json["loss"].is_number()) continue;
    losses.push_back({json.value("step", std::int64_t{0}), json["loss"]});
  }
  return losses.dump();
}

std::string ContentOf(const OpenTrace& run, const Timeline& timeline, const std::string& format,
                      const std::vector<StepSpan>& spans) {
  std::ostringstream content;
  if (format == "perfetto") WritePerfetto(content, run.index, timeline);
  if (format == "chrome") WriteChrome(content, run.index, timeline);
  if (format == "html") {
    const Summary summary = Summarize(run.index, spans);
    WritePage(content, run.index, timeline,
              {ToJson(StageTable(summary, run.index)), LossesOf(run.directory)});
  }
  return std::move(content).str();
}

/// What became of every message of the stretch.
std::string Account(const Timeline& timeline, const std::string& steps) {
  std::string reasons;
  const auto add = [&](std::int64_t count, const char* reason) {
    if (count > 0) reasons += (reasons.empty() ? "" : ", ") + std::to_string(count) + reason;
  };
  add(timeline.unhandled, " never handled");
  add(timeline.nameless, " handled by an actor without a name in the trace");
  const auto arrows = static_cast<std::int64_t>(timeline.arrows.size());
  std::string text = std::to_string(timeline.messages()) + " messages in the window, " +
                     std::to_string(arrows) + " arrows, " +
                     std::to_string(timeline.messages() - arrows) + " without" +
                     (reasons.empty() ? "" : " (" + reasons + ")") + '\n';
  if (steps.empty()) return text;
  return text + std::to_string(timeline.of_steps) + " of the messages are of " +
         (steps.find('-') == std::string::npos ? "step " : "steps ") + steps + ", " +
         std::to_string(timeline.messages() - timeline.of_steps) +
         " of other rounds, sent or handled meanwhile\n";
}

int Export(const ExportArguments& arguments) {
  const std::optional<StepRange> range = RangeOf(arguments.steps);
  const OpenTrace run(arguments.run);
  const std::vector<StepSpan> spans = run.steps.In(range);
  const Timeline timeline =
      MakeTimeline(run.index, spans, range ? Stretch::kSteps : Stretch::kWhole);
  const std::string content = ContentOf(run, timeline, arguments.format, spans);
  if (arguments.format != "html") {
    const LintReport report = Lint(content);
    if (!report.found.empty()) {
      std::cerr << "troupe trace export: nothing is written, an importer would trip over it\n"
                << Format(report);
      return kExitFailed;
    }
  }
  std::string path = arguments.out;
  if (path.empty()) {
    path = run.directory + "/timeline" + (range ? "-" + arguments.steps : "") +
           SuffixOf(arguments.format);
  }
  std::error_code ignored;
  const auto there = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    // Never put a file in the place of a device, a link or a folder.
    throw std::runtime_error(path + ": is there, and is no regular file");
  }
  ReplaceFile(path, [&](OutputFile& file) {
    file.Write(std::as_bytes(std::span(content.data(), content.size())));
  });
  std::int64_t work = 0;
  std::int64_t open = 0;
  for (const LaneSlice& slice : timeline.slices) {
    if (slice.work >= 0) {
      ++work;
    } else if (run.index.message(slice.message).end_ns < 0) {
      ++open;
    }
  }
  std::cout << path << ": " << timeline.slices.size() << " slices (" << work << " of work, "
            << std::ssize(timeline.slices) - work << " of handled messages), "
            << timeline.arrows.size() << " arrows, "
            << Bytes(static_cast<std::int64_t>(content.size())) << '\n';
  if (open > 0) {
    std::cout << open << (open == 1 ? " slice ends" : " slices end")
              << " where the trace does: the handler had not returned\n";
  }
  std::cout << Account(timeline, arguments.steps);
  std::cout << WhatIsMissing(run.trace);
  return kExitDone;
}

}  // namespace

void AddTraceExport(CLI::App& trace, Command& command) {
  auto arguments = std::make_shared<ExportArguments>();
  auto* verb = AddRunVerb(
      trace, "export",
      "Write a timeline: of every device what it ran, of every actor what it handled, an\n"
      "arrow for every message, memory, microbatches in flight and credits. perfetto and chrome\n"
      "are for ui.perfetto.dev (Open trace file), html is a page that needs nothing else.",
      arguments->run);
  AddSteps(*verb, arguments->steps);
  AddChoice(*verb, "--format", {"perfetto", "chrome", "html"}, arguments->format);
  verb->add_option("--out", arguments->out,
                   "file to write (default: RUN/timeline-A-B.pftrace, .json or .html)")
      ->type_name("FILE");
  SetAction(*verb, command, [arguments] { return Export(*arguments); });
}

}  // namespace troupe
