#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "app/run_directory.hpp"
#include "cli/commands.hpp"
#include "cli/schedule/bench_table.hpp"
#include "cli/schedule/candidate.hpp"
#include "files/output_file.hpp"
#include "files/text_file.hpp"
#include "schedule/drawing.hpp"
#include "schedule/lint.hpp"
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

/// Throws LayoutError for a job of which such a table cannot say what ranks run.
void ExpectTable(const JobPlan& plan) {
  for (const EdgePlan& edge : plan.edges()) {
    if (edge.placement == Placement::kDisjoint) continue;
    throw LayoutError("--out csv: edge " + edge.name +
                      ": its modules share ranks and run in phases, which the grammar of tables "
                      "cannot describe; expected --out text or svg");
  }
}

int Show(const ShowArguments& arguments) {
  OverridesOf(arguments.kind, "--kind");
  const Candidate candidate =
      LoadCandidate(arguments.config, arguments.kind, arguments.microbatches);
  const JobPlan& plan = *candidate.plan;
  if (arguments.out == "csv") ExpectTable(plan);
  const StageTimes times = TimesFor(candidate, arguments.durations, arguments.scales);
  const Simulation simulation = Simulate(candidate, times);
  const Drawing drawing = DrawingOf(
      plan.graph(), plan.schedule(), simulation,
      candidate.kind + ", " + std::to_string(candidate.microbatches()) + " microbatches, bubble " +
          Percent(BubbleOf(plan, simulation)) + ", durations " + times.source);
  const std::string text = arguments.out == "svg"   ? ToSvg(drawing)
                           : arguments.out == "csv" ? ToCsv(ToTable(drawing, plan.graph()))
                                                    : ToText(drawing, arguments.width);
  if (arguments.file.empty()) {
    std::cout << text;
  } else {
    WriteInPlace(arguments.file, text);
  }
  return kExitDone;
}

struct LintArguments {
  std::string file;
  std::string config;
  std::int64_t max_activations = 0;
};

int Refuse(const std::string& file, const std::string& why) {
  std::cerr << file << ": " << why << '\n';
  return kExitBadInput;
}

std::string ListOf(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return text;
}

int Lint(const LintArguments& arguments) {
  const TextFile file = ReadTextFile(arguments.file, kMaxWholeFile, "expected at most 64 MiB");
  if (!file.failure.empty()) return Refuse(arguments.file, file.failure);
  LintResult result;
  std::vector<std::string> modules;
  try {
    const ActionTable table = ParseActionTable(file.text);
    modules = table.NamedModules();
    result = Lint(table, arguments.max_activations);
  } catch (const std::invalid_argument& e) {
    return Refuse(arguments.file, e.what());
  }
  if (!result.problem.empty()) return Refuse(arguments.file, result.problem);
  const TableFacts& facts = result.facts;
  std::printf(
      "%s: %d ranks, %d stages, %lld microbatches; takes %lld units (F 1, B 2, I 1, W 1), "
      "bubble %.1f%%\npeak activations by rank: %s\n",
      arguments.file.c_str(), facts.ranks, facts.stages, static_cast<long long>(facts.microbatches),
      static_cast<long long>(facts.makespan), 100.0 * facts.bubble,
      FirstOf(facts.peak_activations, 16, " ...").c_str());
  if (modules.size() > 1) {
    std::printf(
        "it orders %s together, for reading: schedule.kind = \"csv\" takes the rows of one "
        "module, the one that feeds no other, with its stages from 0\n",
        ListOf(modules).c_str());
  }
  if (arguments.config.empty()) return kExitDone;
  const Candidate candidate =
      LoadCandidate({arguments.config, {}}, "csv:" + arguments.file, facts.microbatches);
  const ModuleConfig& sink = candidate.plan->config().Sink();
  std::printf("%s: fits the %d pipeline ranks of %s\n", arguments.config.c_str(), sink.layout.pp,
              sink.name.c_str());
  return kExitDone;
}

void AddShow(CLI::App& verb, Command& command) {
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
  AddChoice(*show, "--out", {"text", "svg", "csv"}, arguments->out,
            "format (csv in the grammar of PyTorch's pipelining)");
  show->add_option("--file", arguments->file, "write there instead of printing");
  show->add_option("--width", arguments->width, "of text, in characters; default 110")
      ->check(CLI::Range(40, 2000));
  SetCommand(*show, command, [arguments] { return Show(*arguments); });
}

void AddLint(CLI::App& verb, Command& command) {
  auto* lint = verb.add_subcommand(
      "lint",
      "Check a schedule in the grammar of PyTorch's pipelining: a row per rank, cells such as\n"
      "0F3, 0B3, 0I3, 0W3, 0SEND_F3, (0F1;1B0)OVERLAP_F_B; an empty cell is a bubble. Rows and\n"
      "columns count from 0. Prints one line: where it deadlocks, lacks a pass or keeps too\n"
      "many activations, or its size and cost. Exit code: 0 it can run, 2 it cannot.");
  auto arguments = std::make_shared<LintArguments>();
  lint->add_option("FILE", arguments->file, "the schedule")->required();
  lint->add_option("CONFIG", arguments->config,
                   "also whether the module that feeds no other could run it");
  lint->add_option("--max-activations", arguments->max_activations,
                   "microbatches that a rank may keep at one time, all its stages together")
      ->check(CLI::Range(1, 1'000'000));
  SetCommand(*lint, command, [arguments] { return Lint(*arguments); });
}

}  // namespace

void AddSchedule(CLI::App& app, Command& command) {
  auto* verb =
      app.add_subcommand("schedule", "Draw a pipeline schedule, or check one from a file.");
  verb->require_subcommand(1);
  AddShow(*verb, command);
  AddLint(*verb, command);
}

}  // namespace troupe
