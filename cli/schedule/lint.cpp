#include "schedule/lint.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/schedule/candidate.hpp"
#include "cli/schedule/verbs.hpp"
#include "configs/text_file.hpp"

namespace troupe {
namespace {

struct LintArguments {
  std::string file;
  std::string config;
  std::int64_t max_activations = 0;
};

int Refuse(const std::string& file, const std::string& why) {
  std::cerr << file << ": " << why << '\n';
  return kExitBadInput;
}

std::string TextOf(const std::vector<std::int64_t>& numbers) {
  std::string text;
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(numbers[i]);
  }
  return text + (numbers.size() > kShown ? " ..." : "");
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
      TextOf(facts.peak_activations).c_str());
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

}  // namespace

void AddScheduleLint(CLI::App& verb, Command& command) {
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

void AddSchedule(CLI::App& app, Command& command) {
  auto* verb =
      app.add_subcommand("schedule", "Draw a pipeline schedule, or check one from a file.");
  verb->require_subcommand(1);
  AddScheduleShow(*verb, command);
  AddScheduleLint(*verb, command);
}

}  // namespace troupe
