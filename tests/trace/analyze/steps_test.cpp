#include "trace/analyze/steps.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

/// As if these rounds' messages had been overwritten, or were of a trace that notes none.
void Silence(RunTrace& trace, const std::set<std::int64_t>& rounds) {
  for (TraceMessage& m : trace.messages) {
    if (rounds.count(m.round) > 0) m.step = -1;
  }
}

/// "4:7 5:8": round and step of each.
std::string Numbers(const RunTrace& trace) {
  const TraceIndex index(trace);
  const Steps steps(index);
  std::string text;
  for (const StepSpan& span : steps.all()) {
    text +=
        (text.empty() ? "" : " ") + std::to_string(span.round) + ':' + std::to_string(span.step);
  }
  return text;
}

TEST_CASE("steps are the rounds that train, with the numbers that their messages say", "[trace]") {
  generated::Spec spec;
  spec.evaluates_first = true;
  spec.first_step = 5;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  REQUIRE(steps.all().size() == 3);
  CHECK(steps.all().front().step == 5);
  CHECK(steps.all().front().round == 1);
  CHECK(steps.StepOf(0) == -1);
  CHECK(steps.StepOf(3) == 7);
  CHECK_THROWS_WITH(steps.Of(4), "step 4 is not in the trace, which has steps 5-7");
}

TEST_CASE("a round whose messages are gone has the number that its neighbours leave it",
          "[trace]") {
  generated::Spec spec;
  spec.evaluates_first = true;
  spec.first_step = 5;
  spec.steps = 4;
  const RunTrace whole = generated::Generate(spec);
  REQUIRE(Numbers(whole) == "1:5 2:6 3:7 4:8");
  for (const std::set<std::int64_t>& gone :
       {std::set<std::int64_t>{0, 1}, {0, 1, 2, 3}, {2}, {0, 2, 3, 4}, {0, 1, 3}}) {
    RunTrace trace = whole;
    Silence(trace, gone);
    CHECK(Numbers(trace) == "1:5 2:6 3:7 4:8");
  }
  RunTrace trace = whole;
  Silence(trace, {0, 1, 2, 3, 4});
  CHECK(Numbers(trace) == "1:1 2:2 3:3 4:4");
}

TEST_CASE("a round that is announced, and has no work yet, numbers those before it", "[trace]") {
  generated::Spec spec;
  spec.first_step = 9;
  RunTrace trace = generated::Generate(spec);
  Silence(trace, {0, 1});
  trace.work.erase(std::remove_if(trace.work.begin(), trace.work.end(),
                                  [](const TraceWork& work) { return work.pass.round == 2; }),
                   trace.work.end());
  CHECK(Numbers(trace) == "0:9 1:10");
}

TEST_CASE("a step that has not ended is none, nor is one that has begun meanwhile", "[trace]") {
  generated::Spec spec;
  spec.steps = 5;
  RunTrace trace = generated::Generate(spec);
  std::map<std::int64_t, int> kept;
  trace.work.erase(std::remove_if(trace.work.begin(), trace.work.end(),
                                  [&](const TraceWork& work) {
                                    const std::int64_t round = work.pass.round;
                                    return round >= 3 && ++kept[round] > (round == 3 ? 9 : 2);
                                  }),
                   trace.work.end());
  CHECK(Numbers(trace) == "0:1 1:2 2:3");
}

TEST_CASE("what a damaged file says of steps is used as far as it can be", "[trace]") {
  RunTrace trace = generated::Generate({});
  for (TraceMessage& m : trace.messages) {
    if (m.step > 0) m.step = m.round == 1 ? 40 : -7 + 10 * m.round;
  }
  CHECK(Numbers(trace) == "0:39 1:40 2:41");  // 13 would be less than the one before
}

TEST_CASE("a step begins where the round before has ended", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Steps steps(index);
  CHECK(steps.Of(1).begin_ns > 0);  // announced after the message to the director
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

TEST_CASE("a checkpoint belongs to the step after it, and makes no step of its own", "[trace]") {
  generated::Spec spec;
  spec.steps = 4;
  spec.checkpoint_every = 2;
  spec.checkpoint_us = 20'000;  // ten times as long as a step
  const RunTrace trace = generated::Generate(spec);
  // The last step begins with none, but has ended; the last checkpoint is before no round.
  REQUIRE(Numbers(trace) == "0:1 1:2 2:3 3:4");
  const TraceIndex index(trace);
  const Steps steps(index);
  for (const StepSpan& span : steps.all()) {
    CHECK((span.end_ns - span.begin_ns > 20'000'000) == (span.step == 3));
  }
  CHECK(steps.Of(3).begin_ns >= steps.Of(2).end_ns);

  // Before an evaluation it is none of the kinds of work that only training has.
  spec.evaluates_first = true;
  spec.checkpoint_every = 0;
  RunTrace silent = generated::Generate(spec);
  Silence(silent, {0, 1, 2, 3, 4});
  REQUIRE(Numbers(silent) == "1:1 2:2 3:3 4:4");
  silent.work.insert(silent.work.begin(), silent.work.front());
  silent.work.front().pass.kind = WorkKind::kCheckpoint;
  CHECK(Numbers(silent) == "1:1 2:2 3:3 4:4");
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
