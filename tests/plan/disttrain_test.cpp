#include "tests/plan/disttrain.hpp"

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// The fewest GPUs with a step of at most `equal` times the shortest, by trying everything.
int FewestByTrying(const DistTrainProblem& made, double equal, double& best_s) {
  const ChoiceProblem& problem = made.problem;
  std::vector<SinkOption> sinks;
  for (const auto& set : made.sinks) sinks.insert(sinks.end(), set.begin(), set.end());
  best_s = std::numeric_limits<double>::infinity();
  int fewest = problem.max_ranks;
  for (const bool counts : {false, true}) {
    const double limit_s = best_s * equal * (1.0 + 1e-12);
    for (const SinkOption& sink : sinks) {
      const auto modules = problem.options_of(sink.group);
      for (const RunOption& encoder : modules[0]) {
        const int before = sink.own.ranks + encoder.ranks;
        if (before >= problem.max_ranks) break;
        for (const RunOption& generator : modules[1]) {
          const int ranks = before + generator.ranks;
          if (ranks > problem.max_ranks) break;
          const double step_s =
              sink.own.first_s + encoder.first_s + generator.first_s +
              static_cast<double>(sink.units - 1) *
                  std::max({sink.own.period_s, encoder.period_s, generator.period_s});
          if (!counts) best_s = std::min(best_s, step_s);
          if (counts && step_s <= limit_s) fewest = std::min(fewest, ranks);
        }
      }
    }
  }
  return fewest;
}

}  // namespace

TEST_CASE("DistTrain's plans are those of trying everything, and leave GPUs that give nothing",
          "[plan]") {
  struct Size {
    int gpus;
    int batch;
  };
  const Size size = GENERATE(Size{40, 40}, Size{112, 240}, Size{200, 480}, Size{1296, 1920});
  const DistTrainProblem made = MakeDistTrain(kMllm72b, size.gpus, size.batch);
  INFO(size.gpus << " GPUs");
  constexpr double kEqual = 1.001;
  double best_s = 0.0;
  const int fewest = FewestByTrying(made, kEqual, best_s);
  const Choice plan = FewestRanks(made.problem, kEqual);
  CHECK(plan.ranks == fewest);
  CHECK(plan.step_s <= kEqual * best_s * (1.0 + 1e-12));
  CHECK(plan.ranks <= size.gpus);
  CHECK(BestChoices(made.problem).front().step_s == Approx(best_s).epsilon(1e-12));
}

TEST_CASE("with as many samples per GPU, DistTrain's plans are alike", "[plan]") {
  std::vector<double> steps;
  std::vector<int> ranks;
  for (const int factor : {1, 2, 4}) {
    const DistTrainProblem made = MakeDistTrain(kMllm72b, 324 * factor, 480 * factor);
    const Choice plan = FewestRanks(made.problem, 1.001);
    steps.push_back(plan.step_s);
    ranks.push_back(plan.ranks);
    CHECK(plan.ranks < 324 * factor);  // more give nothing
  }
  CHECK(steps[1] == Approx(steps[0]).epsilon(0.01));
  CHECK(steps[2] == Approx(steps[0]).epsilon(0.01));
  CHECK(ranks[1] == Approx(2 * ranks[0]).epsilon(0.03));
  CHECK(ranks[2] == Approx(4 * ranks[0]).epsilon(0.03));
}

}  // namespace troupe
