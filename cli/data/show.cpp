#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/data/data.hpp"
#include "cli/data/opened_rows.hpp"
#include "cli/profile/traced_job.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

struct StepArguments {
  ConfigArguments config;
  std::int64_t step = 1;
  bool text = false;
};

/// "83 tokens, 12 learned, 1 image".
std::string SizeText(const RowFacts& facts, const StoredRow& stored,
                     const std::vector<RowField>& fields) {
  std::string text =
      Counted(facts.tokens, "token") + ", " + std::to_string(facts.labels) + " learned";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::vector<std::string>& files = stored.row.files[i];
    if (!files.empty()) text += ", " + Counted(std::ssize(files), fields[i].word);
  }
  return facts.cut ? text + ", its end is cut" : text;
}

void PrintTurns(const LlavaRow& row) {
  for (const Turn& turn : row.turns) {
    const char* const role = turn.answer ? "model" : turn.system ? "system" : "user";
    std::printf("      %-6s %s\n", role, JsonText(turn.text).c_str());
  }
}

/// Finds the packs before a place, and prints how far it is, once a second.
void FindPacks(std::int64_t end, const RowSource& source) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kAtOnce = 10'000;
  Clock::time_point next = Clock::now() + std::chrono::seconds(1);
  for (std::int64_t pack = 0; pack < end; pack += kAtOnce) {
    source.WindowAt(pack);
    if (Clock::now() < next) continue;
    next = Clock::now() + std::chrono::seconds(1);
    std::fprintf(stderr, "found %lld of the %lld packs before this step\n",
                 static_cast<long long>(pack), static_cast<long long>(end));
  }
}

int ShowStep(const StepArguments& arguments) {
  const auto [config, source] = OpenRows(arguments.config);
  const Round round = RoundOn(config, arguments.step - 1, arguments.step - 1);
  if (config.data.packing) FindPacks(round.place, *source);
  const std::vector<RowField> fields = FormatOf(config).fields;
  const std::int64_t each = config.samples_per_microbatch();
  std::printf("step %lld: places %lld to %lld of the order\n",
              static_cast<long long>(arguments.step), static_cast<long long>(round.place),
              static_cast<long long>(round.place + each * round.microbatches - 1));
  std::int64_t place = 0;
  for (const auto& rows : source->PlacedRowsOf(round)) {
    if (place % each == 0) std::printf("microbatch %lld\n", static_cast<long long>(place / each));
    for (const std::int64_t row : rows) {
      if (row < 0) continue;
      const StoredRow stored = source->rows(/*train=*/true).Read(row);
      const std::string line = stored.name() + ": " +
                               SizeText(source->rows(/*train=*/true).FactsOf(row), stored, fields);
      std::printf("  %lld  %s\n", static_cast<long long>(place % each), line.c_str());
      if (arguments.text) PrintTurns(stored.row);
    }
    ++place;
  }
  return kExitDone;
}

}  // namespace

void AddDataShow(CLI::App& data, Command& command) {
  auto* verb =
      data.add_subcommand("show",
                          "Print the samples of a step, by microbatch and place: where each comes "
                          "from and how long it is.\n"
                          "Exit code: 0 done, 1 failed, 2 wrong arguments, configuration or data.");
  auto arguments = std::make_shared<StepArguments>();
  AddConfigArguments(*verb, arguments->config);
  constexpr std::int64_t kMostSteps = 1'000'000'000;
  verb->add_option("--step", arguments->step, "step of a run from its beginning, from 1")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, kMostSteps));
  verb->add_flag("--text", arguments->text, "print the turns of each sample, too");
  SetCommand(*verb, command, [arguments] { return ShowStep(*arguments); });
}

}  // namespace troupe
