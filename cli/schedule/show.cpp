#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "app/find_run.hpp"
#include "cli/schedule/arguments.hpp"
#include "cli/schedule/compare.hpp"
#include "cli/schedule/verbs.hpp"
#include "files/output_file.hpp"
#include "schedule/drawing.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

struct ShowArguments {
  ConfigArguments config;
  std::string kind;
  std::int64_t microbatches = 0;
  std::string durations;
  std::vector<std::string> scales;
  std::string out = "text";
  std::string file;
  int width = 110;
};

void Print(const std::string& text, const std::string& file) {
  if (file.empty()) {
    std::cout << text;
  } else {
    WriteInPlace(file, text);
  }
}

int Show(const ShowArguments& arguments) {
  OverridesOf(arguments.kind, "--kind");
  const Candidate candidate =
      LoadCandidate(arguments.config, arguments.kind, arguments.microbatches);
  const JobPlan& plan = *candidate.plan;
  const StageTimes times = TimesFor(candidate, arguments.durations, arguments.scales);
  const Simulation simulation =
      Simulate(plan.graph(), times.WithLinks(plan.schedule()),
               times.AsPassDuration(plan.schedule()), candidate.microbatches());
  const Drawing drawing = DrawingOf(
      plan.graph(), plan.schedule(), simulation,
      candidate.kind + ", " + std::to_string(candidate.microbatches()) + " microbatches, bubble " +
          Percent(BubbleOf(plan, simulation)) + ", durations " + times.source);
  if (arguments.out == "svg") {
    Print(ToSvg(drawing), arguments.file);
  } else if (arguments.out == "csv") {
    Print(ToCsv(ToTable(drawing, plan.graph())), arguments.file);
  } else {
    Print(ToText(drawing, arguments.width), arguments.file);
  }
  return kExitDone;
}

}  // namespace

void AddScheduleShow(CLI::App& verb, Command& command) {
  auto* show = verb.add_subcommand(
      "show",
      "Draw the schedule of a configuration, by simulation; starts nothing.\n"
      "A row per device, each microbatch a colour; F forward, B backward, W the weights' part\n"
      "of a split backward. Each row ends with its bubble, the share of the step in which its\n"
      "ranks compute nothing; the title has that of all ranks.\n"
      "Exit code: 0 drawn, 1 the file cannot be written, 2 bad configuration.");
  auto arguments = std::make_shared<ShowArguments>();
  AddConfigArguments(*show, arguments->config);
  show->add_option("--kind", arguments->kind,
                   "1f1b, gpipe, zb-h1, interleaved[:CHUNKS] or csv:FILE; the\n"
                   "configuration's own if not given");
  show->add_option("--microbatches", arguments->microbatches, "per step")
      ->check(CLI::Range(1, 100'000));
  show->add_option("--durations", arguments->durations,
                   "take the passes' durations from the trace of this run directory")
      ->type_name("RUN")
      ->transform(FindRun);
  show->add_option("--scale", arguments->scales, "multiply a module's durations: vision=0.5")
      ->type_name("MODULE=FACTOR")
      ->allow_extra_args(false);
  show->add_option("--out", arguments->out,
                   "text for a terminal, svg, or csv in the grammar of PyTorch's pipelining")
      ->check(CLI::IsMember({"text", "svg", "csv"}));
  show->add_option("--file", arguments->file, "write there instead of printing");
  show->add_option("--width", arguments->width, "of text, in characters; default 110")
      ->check(CLI::Range(40, 2000));
  SetCommand(*show, command, [arguments] { return Show(*arguments); });
}

}  // namespace troupe
