#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cli/data/data.hpp"
#include "cli/data/opened_rows.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// More rows are sampled at equal distances: the plot would not change.
constexpr std::int64_t kMostRows = 200'000;

std::string Number(double value) { return Formatted(value < 100 ? "%.1f" : "%.0f", value); }

/// Prints "tokens  12 to 90, half of the rows at most 60, mean 61.2" and a histogram.
void PrintDistribution(const std::string& name, std::vector<std::int64_t> values) {
  if (values.empty()) return;
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  std::printf("  %s: %lld to %lld, mean %s, median %lld, 95%% at most %lld\n", name.c_str(),
              static_cast<long long>(values.front()), static_cast<long long>(values.back()),
              Number(mean).c_str(), static_cast<long long>(at(0.5)),
              static_cast<long long>(at(0.95)));
  if (values.front() == values.back()) return;
  constexpr std::int64_t kBars = 12;
  constexpr double kWidth = 50;
  const std::int64_t step = (values.back() - values.front()) / kBars + 1;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(kBars), 0);
  for (const std::int64_t value : values) {
    ++counts[static_cast<std::size_t>((value - values.front()) / step)];
  }
  while (counts.back() == 0) counts.pop_back();
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  std::int64_t low = values.front();
  for (const std::int64_t count : counts) {
    const std::string range = step == 1
                                  ? std::to_string(low)
                                  : std::to_string(low) + "-" + std::to_string(low + step - 1);
    const auto width =
        static_cast<std::size_t>(std::lround(kWidth * static_cast<double>(count) / most));
    std::printf("    %13s  %-50s  %s\n", range.c_str(), std::string(width, '#').c_str(),
                PercentOf(count, std::ssize(values)).c_str());
    low += step;
  }
}

void PrintSource(const std::string& name, const RowSource& set, bool train, const Interval& source,
                 const std::vector<RowField>& fields) {
  const std::int64_t step = std::max<std::int64_t>(1, source.size() / kMostRows);
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> learned;
  std::vector<std::vector<std::int64_t>> lengths(fields.size());
  for (std::int64_t row = source.begin; row < source.end; row += step) {
    if (set.IsSkipped(train, row)) continue;
    const RowFacts facts = set.rows(train).FactsOf(row);
    tokens.push_back(facts.tokens);
    learned.push_back(facts.labels);
    for (std::size_t i = 0; i < fields.size(); ++i) lengths[i].push_back(facts.lengths[i]);
  }
  std::printf("%s: %s%s\n", name.c_str(), Counted(source.size(), "row").c_str(),
              step == 1 ? "" : (", one of " + std::to_string(step) + " read").c_str());
  PrintDistribution("tokens", std::move(tokens));
  PrintDistribution("learned tokens", std::move(learned));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool images = fields[i].word == "image";
    PrintDistribution(images ? "squares of " + fields[i].field : "length of " + fields[i].field,
                      std::move(lengths[i]));
  }
}

int PrintStatistics(const ConfigArguments& arguments) {
  const auto [config, source] = OpenRows(arguments);
  const std::vector<RowField> fields = FormatOf(config).fields;
  for (const bool train : {true, false}) {
    const RowSet& rows = source->rows(train);
    const std::vector<std::string> names =
        train ? config.data.train_paths() : std::vector<std::string>{config.data.held_out};
    for (std::size_t i = 0; i < rows.sources().size(); ++i) {
      PrintSource(names[i], *source, train, rows.sources()[i], fields);
    }
  }
  return kExitDone;
}

}  // namespace

void AddDataStat(CLI::App& data, Command& command) {
  auto* verb = data.add_subcommand(
      "stat",
      "Print how long the samples of each source are and how many images they have, with a plot.\n"
      "Exit code: 0 done, 1 failed, 2 wrong arguments, configuration or data.");
  auto arguments = std::make_shared<ConfigArguments>();
  AddConfigArguments(*verb, *arguments);
  SetCommand(*verb, command, [arguments] { return PrintStatistics(*arguments); });
}

}  // namespace troupe
