#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/synthetic/synthetic_program.hpp"

namespace troupe {
namespace {

ModuleConfig Module(const std::string& name, int first_rank, Layout layout, double sigma) {
  ModuleConfig module;
  module.name = name;
  module.layout = layout;
  module.ranks.resize(static_cast<std::size_t>(layout.num_ranks()));
  std::iota(module.ranks.begin(), module.ranks.end(), first_rank);
  SyntheticConfig synthetic;
  synthetic.time_sigma = sigma;
  module.model = synthetic;
  return module;
}

/// An encoder with dp 2 whose times vary, and a language model with pp 2; 6 microbatches of 4 samples.
Config Job(DataOrder order) {
  Config config;
  config.modules = {Module("vision", 0, {.dp = 2}, 0.6), Module("language", 2, {.pp = 2}, 0.0)};
  config.edges.push_back({"vision", "language", std::nullopt, 8});
  config.cluster.ranks = 4;
  config.schedule.micro_batch_size = 4;
  config.schedule.microbatches = 6;
  config.data.order = order;
  return config;
}

Round RoundAt(std::int64_t step) {
  return {.number = step, .step = step, .microbatches = 6, .place = step * 24};
}

/// The samples that the replicas of the encoder load, by place in the round.
std::vector<std::int64_t> SamplesOf(SyntheticSource& source, const Round& round) {
  std::vector<std::int64_t> samples;
  for (std::int64_t unit = 0; unit < round.microbatches; ++unit) {
    for (int dp = 0; dp < 2; ++dp) {
      const auto inputs = source.Load("vision", dp, round, unit);
      CHECK(inputs->table.samples == std::vector<std::int64_t>{2 * dp, 2 * dp + 1});
      const auto* begin = inputs->tokens.as<std::int64_t>();
      samples.insert(samples.end(), begin, begin + inputs->tokens.num_elements());
    }
  }
  return samples;
}

}  // namespace

TEST_CASE("synthetic samples are numbered through the run, and a balanced step moves its own",
          "[modules]") {
  SyntheticSource random(Job(DataOrder::kRandom));
  SyntheticSource balanced(Job(DataOrder::kBalanced));
  SyntheticSource other(Job(DataOrder::kBalanced));
  for (const std::int64_t step : {0, 5}) {
    std::vector<std::int64_t> drawn(24);
    std::iota(drawn.begin(), drawn.end(), step * 24);
    CHECK(SamplesOf(random, RoundAt(step)) == drawn);
    auto moved = SamplesOf(balanced, RoundAt(step));
    CHECK(moved != drawn);
    CHECK(moved == SamplesOf(other, RoundAt(step)));
    std::ranges::sort(moved);
    CHECK(moved == drawn);
  }
}

TEST_CASE("replicas of a synthetic encoder get equal times of a balanced step", "[modules]") {
  const auto spread = [](DataOrder order) {
    const Config config = Job(order);
    SyntheticSource source(config);
    double worst = 0.0;
    for (std::int64_t step = 0; step < 4; ++step) {
      std::vector<double> times(2);
      for (std::int64_t unit = 0; unit < 6; ++unit) {
        for (int dp = 0; dp < 2; ++dp) {
          const auto inputs = source.Load("vision", dp, RoundAt(step), unit);
          for (std::int64_t i = 0; i < inputs->tokens.num_elements(); ++i) {
            times[static_cast<std::size_t>(dp)] +=
                TimeFactor(TimeSeed(config, "vision"), 0.6, inputs->tokens.as<std::int64_t>()[i]);
          }
        }
      }
      worst = std::max(worst, std::abs(times[0] - times[1]) / (times[0] + times[1]));
    }
    return worst;
  };
  CHECK(spread(DataOrder::kBalanced) < 0.01);
  CHECK(spread(DataOrder::kRandom) > 0.02);
}

TEST_CASE("factors of times are log-normal with a mean of 1", "[modules]") {
  constexpr int kSamples = 20'000;
  double sum = 0.0;
  double logs = 0.0;
  double squares = 0.0;
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    const double factor = TimeFactor(7, 0.6, sample);
    sum += factor / kSamples;
    logs += std::log(factor) / kSamples;
    squares += std::log(factor) * std::log(factor) / kSamples;
  }
  CHECK(sum == Approx(1.0).margin(0.02));
  CHECK(logs == Approx(-0.18).margin(0.02));
  CHECK(std::sqrt(squares - logs * logs) == Approx(0.6).margin(0.02));
  CHECK(TimeFactor(7, 0.0, 3) == 1.0);
  CHECK(TimeFactor(7, 0.6, 3) == TimeFactor(7, 0.6, 3));
  CHECK(TimeFactor(7, 0.6, 3) != TimeFactor(8, 0.6, 3));
  const Config config = Job(DataOrder::kRandom);
  CHECK(TimeSeed(config, "vision") != TimeSeed(config, "language"));
}

TEST_CASE("every stage whose times vary reads its samples", "[modules]") {
  Config config = Job(DataOrder::kRandom);
  config.modules[1].As<SyntheticConfig>().time_sigma = 0.3;
  const JobPlan plan(config);
  for (const StagePlan& stage : plan.stages()) CHECK(stage.reads_data);
  CHECK_FALSE(JobPlan(Job(DataOrder::kRandom)).stages()[1].reads_data);
}

}  // namespace troupe
