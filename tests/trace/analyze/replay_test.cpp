// A step, simulated with the durations that it had.
#include "trace/analyze/replay.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

Replay ReplayOf(const RunTrace& trace, std::int64_t round) {
  const TraceIndex index(trace);
  const RuleInputs rule = RuleOf(trace);
  return ReplayStep(index, round, rule, CompareOrders(index, round, rule));
}

}  // namespace

TEST_CASE("a step is as long as its simulation where messages take next to no time", "[trace]") {
  generated::Spec spec;
  spec.handling_ns = 1;
  spec.near_ns = 1;
  spec.slow = {{"language.s1", 0, WorkKind::kForward, 5, 700, false}};
  const RunTrace trace = generated::Generate(spec);
  for (const std::int64_t round : {0, 1, 2}) {
    const Replay replay = ReplayOf(trace, round);
    INFO(Format(replay));
    CHECK(replay.passes_ns > 0);
    CHECK(static_cast<double>(replay.passes_ns) ==
          Approx(static_cast<double>(replay.measured_ns)).epsilon(0.001));
    CHECK(static_cast<double>(replay.commands_ns) ==
          Approx(static_cast<double>(replay.measured_ns)).epsilon(0.001));
    CHECK(replay.orders > 0);
    CHECK(replay.other_orders == 0);
    CHECK_THAT(Format(replay), Catch::EndsWith(", in the same orders\n"));
  }
  CHECK(ReplayOf(trace, 1).measured_ns > ReplayOf(trace, 0).measured_ns + 600'000);
}

TEST_CASE("what lies between a command and its answer is simulated with it", "[trace]") {
  generated::Spec spec;
  spec.handling_ns = 5000;
  spec.near_ns = 2000;
  const Replay replay = ReplayOf(generated::Generate(spec), 1);
  INFO(Format(replay));
  CHECK(replay.passes_ns < replay.commands_ns);
  CHECK(replay.commands_ns <= replay.measured_ns);
}

TEST_CASE("an order that the simulation does not run is counted", "[trace]") {
  RunTrace trace = generated::Generate({});
  generated::SwapPasses(trace, 4, 1, 5);
  const Replay replay = ReplayOf(trace, 1);
  CHECK(replay.other_orders == 1);
  CHECK_THAT(Format(replay), Catch::EndsWith(", with 1 of " + std::to_string(replay.orders) +
                                             " orders different\n"));
}

TEST_CASE("what cannot be predicted is not simulated either", "[trace]") {
  RunTrace trace = generated::Generate({});
  for (TraceWork& work : trace.work) {
    if (work.pass.rank == 0) work.pass.rank = 1;
  }
  const Replay replay = ReplayOf(trace, 1);
  CHECK(replay.not_simulated != "");
  CHECK(replay.passes_ns == 0);
  CHECK_THAT(Format(replay), !Catch::Contains("simulated"));
}

}  // namespace troupe
