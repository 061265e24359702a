// A run that goes on with another global batch reads every sample once, in the same order.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "app/rounds.hpp"
#include "data/row_source.hpp"
#include "tests/data/llava_set.hpp"

namespace troupe {
namespace {

/// A job with `dp` language replicas and as many microbatches and samples in each.
Config JobOf(const DataSet& data, int dp, int microbatches, int samples) {
  std::vector<int> ranks;
  for (int rank = 0; rank < dp; ++rank) ranks.push_back(rank);
  Config config = MakeConfig(data, Vit("vision", {7}, 1), Llama(ranks, 1, dp));
  config.schedule.microbatches = microbatches;
  config.schedule.micro_batch_size = samples;
  config.run.steps = 1000;
  return config;
}

/// As a checkpoint says it.
struct Start : RunStart {
  PackWindow window;
};

/// The samples of `steps` steps after `start`, in the order of microbatches and replicas. Moves
/// `start` behind them.
std::vector<std::string> SamplesOf(const Config& config, Start& start, int steps) {
  RowSource source(config);
  source.BeginAt(start.window);
  const RoundPlan plan = TrainingPlan(config, 0, start);
  std::vector<std::string> names;
  for (int number = 0; number < steps; ++number) {
    const Round round = *plan(number);
    for (std::int64_t unit = 0; unit < config.schedule.microbatches; ++unit) {
      for (int dp = 0; dp < config.Sink().layout.dp; ++dp) {
        const auto inputs = source.Load("language", dp, round, unit);
        names.insert(names.end(), inputs->names.begin(), inputs->names.end());
      }
    }
  }
  start.place = PlaceAfter(config, start, start.step + steps);
  start.window = source.WindowAt(start.place);
  start.step += steps;
  return names;
}

}  // namespace

TEST_CASE("every layout and global batch reads on at the very next sample", "[data]") {
  const DataSet data;
  const bool packing = GENERATE(false, true);
  const auto with = [&](Config config) {
    config.data.packing = packing;
    config.data.pack_window = 7;
    return config;
  };
  Start whole;
  const std::vector<std::string> expected = SamplesOf(with(JobOf(data, 1, 1, 1)), whole, 86);
  Start start;
  std::vector<std::string> read;
  for (const auto& [dp, microbatches, samples, steps] :
       std::vector<std::array<int, 4>>{{2, 3, 2, 2},  // 24
                                       {1, 1, 1, 5},  // 5
                                       {3, 2, 1, 4},  // 24
                                       {4, 1, 4, 2},  // 32
                                       {1, 1, 1, 1}}) {
    const auto some = SamplesOf(with(JobOf(data, dp, microbatches, samples)), start, steps);
    read.insert(read.end(), some.begin(), some.end());
  }
  CHECK(start.place == 86);
  CHECK(read == expected);
}

TEST_CASE("a balanced run reads on at the very next sample, whatever the layouts", "[data]") {
  const DataSet data;
  Start whole;
  std::vector<std::string> expected = SamplesOf(JobOf(data, 1, 1, 1), whole, 85);
  Start start;
  std::size_t read = 0;
  for (const auto& [dp, microbatches, samples, steps] :
       std::vector<std::array<int, 4>>{{2, 3, 2, 2}, {1, 1, 1, 5}, {3, 2, 1, 4}, {4, 1, 4, 2}}) {
    // Steps one by one: each has its own samples, in any order.
    for (int step = 0; step < steps; ++step) {
      Config config = JobOf(data, dp, microbatches, samples);
      config.data.order = DataOrder::kBalanced;
      std::vector<std::string> of_step = SamplesOf(config, start, 1);
      std::vector<std::string> drawn(
          expected.begin() + static_cast<std::ptrdiff_t>(read),
          expected.begin() + static_cast<std::ptrdiff_t>(read + of_step.size()));
      read += of_step.size();
      std::ranges::sort(of_step);
      std::ranges::sort(drawn);
      CHECK(of_step == drawn);
    }
  }
  CHECK(read == 85);
}

TEST_CASE("grouped samples are read once in every epoch, whatever the global batches", "[data]") {
  const DataSet data;
  const auto with = [](Config config) {
    config.data.group_by = GroupBy::kModalityLength;
    return config;
  };
  Start start;
  start.group = 12;
  std::map<std::string, int> counts;
  for (const auto& [dp, microbatches, samples, steps] :
       std::vector<std::array<int, 4>>{{2, 3, 2, 3}, {3, 1, 1, 5}, {1, 1, 1, 1}}) {
    for (const auto& name : SamplesOf(with(JobOf(data, dp, microbatches, samples)), start, steps)) {
      ++counts[name];
    }
  }
  REQUIRE(start.place == 4 * 13);
  CHECK(counts.size() == 13);
  CHECK(std::ranges::all_of(counts, [](const auto& count) { return count.second == 4; }));
}

}  // namespace troupe
