#include "trace/analyze/steps.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

TEST_CASE("steps are the rounds that train, counted from the first step", "[trace]") {
  generated::Spec spec;
  spec.evaluates_first = true;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index, 5);
  REQUIRE(steps.all().size() == 3);
  CHECK(steps.all().front().step == 5);
  CHECK(steps.all().front().round == 1);
  CHECK(steps.StepOf(0) == -1);
  CHECK(steps.StepOf(3) == 7);
  CHECK_THROWS_WITH(steps.Of(4), "step 4 is not in the trace, which has steps 5-7");
}

TEST_CASE("a step begins where the round before has ended", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Steps steps(index);
  CHECK(steps.Of(1).begin_ns > 0);  // announced after the director was told
  CHECK(steps.Of(2).begin_ns >= steps.Of(1).end_ns);
  CHECK(steps.Of(2).begin_ns < steps.Of(1).end_ns + 10'000);

  // The next round is announced, and work of it runs, while one is under way.
  RunTrace early = trace;
  for (TraceMessage& m : early.messages) {
    if (m.round == 1 && early.types[static_cast<std::size_t>(m.type)] == "RoundBegin") {
      m.sent_ns = steps.Of(1).begin_ns + 1;
    }
  }
  const TraceIndex early_index(early);
  CHECK(Steps(early_index).Of(2).begin_ns == steps.Of(1).end_ns);
}

TEST_CASE("a range of steps is parsed, and what is none is refused with what was expected",
          "[trace]") {
  CHECK(ParseSteps("12").last == 12);
  CHECK(ParseSteps("10-12").first == 10);
  CHECK(ParseSteps("10-12").last == 12);
  for (const char* wrong : {"", "0", "3-2", "a", "1-", "-1", "1-2-3", "1.5"}) {
    CHECK_THROWS_WITH(ParseSteps(wrong), Catch::Contains("expected a step or a range"));
  }
}

TEST_CASE("a message without a round has that of its cause", "[trace]") {
  RunTrace trace = generated::Generate({});
  const TraceIndex before(trace);
  std::vector<std::int64_t> rounds;
  int stripped = 0;
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    rounds.push_back(before.RoundOf(i));
  }
  for (TraceMessage& m : trace.messages) {
    const std::string& type = trace.types[static_cast<std::size_t>(m.type)];
    if (type != "Activation" && type != "RunForward") continue;
    m.round = -1;
    ++stripped;
  }
  const TraceIndex after(trace);
  CHECK(stripped > 50);
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    CHECK(after.RoundOf(i) == rounds[static_cast<std::size_t>(i)]);
  }
}

}  // namespace
}  // namespace troupe
