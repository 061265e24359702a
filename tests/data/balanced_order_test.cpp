// data.order = "balanced" moves the samples of a step and nothing else.
#include <algorithm>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "data/row_source.hpp"
#include "tests/data/llava_set.hpp"

namespace troupe {
namespace {

Config With(Config config, DataOrder order) {
  config.data.order = order;
  return config;
}

std::vector<int> Sorted(std::vector<int> rows) {
  std::ranges::sort(rows);
  return rows;
}

/// The rows that the replicas of the language model load, by place in the round.
std::vector<int> LoadedRows(RowSource& source, const Config& config, const Round& round) {
  std::vector<int> rows;
  for (std::int64_t unit = 0; unit < round.microbatches; ++unit) {
    for (int dp = 0; dp < config.Sink().layout.dp; ++dp) {
      const auto some = RowsOfText(*source.Load("language", dp, round, unit));
      rows.insert(rows.end(), some.begin(), some.end());
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("a balanced step has the samples of a random one", "[data]") {
  const DataSet data;
  const int variant = GENERATE(0, 1, 2);
  CAPTURE(variant);
  Config config = Disjoint(data);
  if (variant == 1) config.data.group_by = GroupBy::kModalityLength;
  if (variant == 2) config.data.packing = true;
  RowSource random(With(config, DataOrder::kRandom));
  RowSource balanced(With(config, DataOrder::kBalanced));
  RowSource other_process(With(config, DataOrder::kBalanced));
  bool moved = false;
  for (const std::int64_t step : {0, 1, 2, 7}) {
    const Round round = TrainRound(step);
    std::vector<int> before;
    std::vector<int> after;
    for (int dp = 0; dp < 2; ++dp) {
      for (std::int64_t unit = 0; unit < 3; ++unit) {
        const auto drawn = random.Load("language", dp, round, unit);
        for (const auto& name : drawn->names) {
          before.push_back(std::stoi(name.substr(1)));
        }
        const auto names = balanced.Load("language", dp, round, unit)->names;
        CHECK(names == other_process.Load("language", dp, round, unit)->names);
        for (const auto& name : names) after.push_back(std::stoi(name.substr(1)));
      }
    }
    CHECK(Sorted(before) == Sorted(after));
    moved = moved || before != after;
    CHECK(balanced.Count(round).labels == random.Count(round).labels);
    CHECK(balanced.Count(round).samples == random.Count(round).samples);
  }
  CHECK(moved);
}

TEST_CASE("all modules and the reference see one balanced order", "[data]") {
  const DataSet data;
  const Config config = With(Disjoint(data), DataOrder::kBalanced);
  RowSource source(config);
  for (const std::int64_t step : {0, 3}) {
    const Round round = TrainRound(step);
    const Inputs whole = source.LoadWhole(round);
    CHECK(LoadedRows(source, config, round) == RowsOfText(whole));
    std::vector<int> encoded;
    for (std::int64_t unit = 0; unit < 3; ++unit) {
      for (int dp = 0; dp < 3; ++dp) {
        const auto greys = Greys(source.Load("vision", dp, round, unit)->fields.at("vision"));
        encoded.insert(encoded.end(), greys.begin(), greys.end());
      }
    }
    CHECK(encoded == Greys(whole.fields.at("vision")));
  }
}

TEST_CASE("replicas load equal numbers of tokens and images of a balanced step", "[data]") {
  const DataSet data;
  const auto spread = [&](DataOrder order) {
    const Config config = With(Disjoint(data), order);
    RowSource source(config);
    double total = 0.0;
    for (std::int64_t step = 0; step < 8; ++step) {
      std::vector<double> tokens(2);
      for (int dp = 0; dp < 2; ++dp) {
        for (std::int64_t unit = 0; unit < 3; ++unit) {
          tokens[static_cast<std::size_t>(dp)] +=
              static_cast<double>(source.Load("language", dp, TrainRound(step), unit)->num_tokens);
        }
      }
      total += std::abs(tokens[0] - tokens[1]) / (tokens[0] + tokens[1]);
    }
    return total / 8;
  };
  const double random = spread(DataOrder::kRandom);
  const double balanced = spread(DataOrder::kBalanced);
  INFO("random " << random << ", balanced " << balanced);
  CHECK(balanced < random / 2);
}

TEST_CASE("an evaluation keeps the order of its list", "[data]") {
  const DataSet data;
  RowSource random(Disjoint(data));
  RowSource balanced(With(Disjoint(data), DataOrder::kBalanced));
  CHECK(RowsOfText(balanced.LoadWhole(EvaluationRound(2))) ==
        RowsOfText(random.LoadWhole(EvaluationRound(2))));
}

TEST_CASE("a balanced order follows the layouts that a job takes", "[data]") {
  const DataSet data;
  const Config before = With(Disjoint(data), DataOrder::kBalanced);
  Config after =
      With(MakeConfig(data, Vit("vision", {1}, 1), Llama({0}, 1, 1)), DataOrder::kBalanced);
  after.schedule.micro_batch_size = 4;
  RowSource source(before);
  const auto old_rows = RowsOfText(source.LoadWhole(TrainRound(1)));
  source.TakeLayouts(after);
  RowSource fresh(after);
  const auto rows = RowsOfText(source.LoadWhole(TrainRound(1)));
  CHECK(rows == RowsOfText(fresh.LoadWhole(TrainRound(1))));
  CHECK(Sorted(rows) == Sorted(old_rows));
}

}  // namespace troupe
