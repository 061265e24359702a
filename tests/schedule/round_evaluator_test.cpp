#include "schedule/round_evaluator.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "schedule/simulate.hpp"
#include "tests/schedule/random_times.hpp"

namespace troupe {
namespace {

PassTimes RandomTimes(std::size_t stages, std::int64_t microbatches, std::int64_t most,
                      Random& random) {
  PassTimes times;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    auto& forward = times.forward_ns.emplace_back();
    auto& backward = times.backward_ns.emplace_back();
    for (std::int64_t unit = 0; unit < microbatches; ++unit) {
      forward.push_back(random.Below(most));
      backward.push_back(random.Below(most));
    }
  }
  return times;
}

std::int64_t Simulated(const StageGraph& graph, const Schedule& schedule, const PassTimes& times,
                       std::int64_t microbatches) {
  const auto duration = [&](int stage, const Pass& pass) {
    const auto& of_kind = pass.kind == PassKind::kForward ? times.forward_ns : times.backward_ns;
    return of_kind[At(stage)][static_cast<std::size_t>(pass.unit)];
  };
  const Simulation simulation = Simulate(graph, schedule, duration, microbatches);
  return simulation.blocked.empty() ? simulation.makespan_ns : RoundEvaluator::kNoBound;
}

const std::vector<StageGraph>& Graphs() {
  static const std::vector<StageGraph> graphs = {
      StageGraph({{"language", 1}}, {}),
      StageGraph({{"language", 4}}, {}),
      StageGraph({{"vision", 1}, {"language", 7}}, {{0, 1, 3}}),
      StageGraph({{"vision", 2}, {"audio", 1}, {"language", 3}}, {{0, 2, 8}, {1, 2, 2}}),
      StageGraph({{"encoder0", 1}, {"encoder1", 1}, {"encoder2", 1}, {"a", 2}, {"b", 2}},
                 {{0, 3, 8}, {1, 3, 8}, {1, 4, 8}, {2, 4, 8}}),
      StageGraph({{"encoder", 2}, {"a", 1}, {"b", 2}, {"join", 2}},
                 {{0, 1, 8}, {0, 2, 8}, {1, 3, 8}, {2, 3, 8}})};
  return graphs;
}

}  // namespace

TEST_CASE("an evaluation equals the simulation of the same passes", "[schedule]") {
  Random random(1);
  for (int draw = 0; draw < 400; ++draw) {
    const StageGraph& graph = Graphs()[At(draw) % Graphs().size()];
    const std::int64_t microbatches = 1 + random.Below(20);
    // Few different durations: many passes end at one instant, or take no time.
    const PassTimes times =
        RandomTimes(graph.stages().size(), microbatches, draw % 3 == 0 ? 3 : 1'000'000, random);
    Schedule schedule = OneForwardOneBackward(LimitsOf(graph));
    if (draw % 2 == 1) schedule.link_ns.assign(graph.links().size(), draw % 4 == 1 ? 1 : 250);
    RoundEvaluator evaluator(graph, schedule, microbatches);
    const std::int64_t expected = Simulated(graph, schedule, times, microbatches);
    INFO("draw " << draw << ", " << microbatches << " microbatches");
    CHECK(evaluator.Makespan(times) == expected);
    CHECK(evaluator.Makespan(times) == expected);  // nothing is left of the first
    CHECK(evaluator.Makespan(times, expected + 1) == expected);
    CHECK(evaluator.Makespan(times, expected) >= expected);
    CHECK(evaluator.Makespan(times, expected / 2) >= expected / 2);
  }
}

TEST_CASE("an evaluation knows stages without backwards, and limits of every size", "[schedule]") {
  Random random(2);
  for (int draw = 0; draw < 200; ++draw) {
    const StageGraph& graph = Graphs()[At(draw) % Graphs().size()];
    const auto stages = static_cast<std::int64_t>(graph.stages().size());
    const std::int64_t microbatches = 1 + random.Below(12);
    const PassTimes times = RandomTimes(graph.stages().size(), microbatches, 1000, random);
    Schedule schedule;
    // The first stages are frozen: a stage that runs backward follows no stage that does.
    const std::int64_t frozen = random.Below(stages + 1);
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      schedule.rules.push_back({.kind = draw % 8 == 5 ? RuleKind::kGpipe : RuleKind::k1F1B,
                                .limit = 1 + random.Below(6),
                                .fixed = draw % 4 == 3});
      schedule.runs_backward.push_back(stage >= frozen);
    }
    if (draw % 5 == 0) schedule.link_ns.assign(graph.links().size(), 1 + random.Below(300));
    RoundEvaluator evaluator(graph, schedule, microbatches);
    INFO("draw " << draw << ", " << frozen << " frozen stages");
    CHECK(evaluator.Makespan(times) == Simulated(graph, schedule, times, microbatches));
  }
}

TEST_CASE("an evaluator refuses the schedules it does not simulate", "[schedule]") {
  const StageGraph graph({{"language", 2}}, {});
  const Schedule plain = OneForwardOneBackward(LimitsOf(graph));
  const auto refuses = [&](const Schedule& schedule) {
    CHECK_THROWS_AS(RoundEvaluator(graph, schedule, 4), std::invalid_argument);
  };
  Schedule schedule = plain;
  schedule.rules.pop_back();
  refuses(schedule);
  schedule = plain;
  schedule.devices = {{0}, {0}};
  refuses(schedule);
  schedule = plain;
  schedule.link_ns = {5, 5};
  refuses(schedule);
  schedule.link_ns = {-1};
  refuses(schedule);
  schedule = plain;
  schedule.rules = ZbH1Rules(LimitsOf(graph));
  refuses(schedule);
}

}  // namespace troupe
