#include "cluster/silence.hpp"

#include <catch2/catch.hpp>

#include "cluster/heartbeat.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const WatchOptions kOptions{250ms, 1000ms, 4000ms};

Judgement Of(Presence presence, std::chrono::nanoseconds length, bool host_answers = true) {
  return Judge(presence, {length, host_answers}, kOptions);
}

}  // namespace

TEST_CASE("a silence is suspected once, then over or the end") {
  CHECK(Of(Presence::kPresent, 0ms) == Judgement::kNothing);
  CHECK(Of(Presence::kPresent, 999ms) == Judgement::kNothing);
  CHECK(Of(Presence::kPresent, 1000ms) == Judgement::kSuspect);
  CHECK(Of(Presence::kSuspected, 1000ms) == Judgement::kNothing);
  CHECK(Of(Presence::kSuspected, 3999ms) == Judgement::kNothing);
  CHECK(Of(Presence::kSuspected, 10ms) == Judgement::kBack);
  CHECK(Of(Presence::kSuspected, 4000ms) == Judgement::kStopped);
  CHECK(Of(Presence::kSuspected, 4000ms, false) == Judgement::kVanished);
  CHECK(Of(Presence::kPresent, 4000ms) == Judgement::kStopped);
}

TEST_CASE("who is lost or has left is not judged again") {
  for (const Presence presence : {Presence::kLost, Presence::kLeft})
    for (const auto length : {0ms, 2000ms, 9000ms})
      for (const bool host_answers : {true, false})
        CHECK(Of(presence, length, host_answers) == Judgement::kNothing);
}

TEST_CASE("a host answers unless something sent is unacknowledged for half of the silence") {
  CHECK(HostAnswers(false, 9s, 4s));
  CHECK(HostAnswers(true, 2s, 4s));
  CHECK_FALSE(HostAnswers(true, 2001ms, 4s));
}

TEST_CASE("only if all others vanish at the same time are we cut off") {
  const Silence vanished{3600ms, false};
  const Silence stopped{3600ms, true};
  const Silence earlier{3000ms, false};
  CHECK(CutOff(std::vector{vanished}, kOptions));
  CHECK(CutOff(std::vector{vanished, vanished}, kOptions));
  CHECK_FALSE(CutOff(std::vector<Silence>{}, kOptions));
  CHECK_FALSE(CutOff(std::vector{vanished, stopped}, kOptions));
  CHECK_FALSE(CutOff(std::vector{vanished, earlier}, kOptions));
}

TEST_CASE("a process that did not run for half of the deadline itself has overslept") {
  CHECK_FALSE(Overslept(250ms, kOptions));
  CHECK_FALSE(Overslept(2000ms, kOptions));
  CHECK(Overslept(2001ms, kOptions));
}

TEST_CASE("every loss has its own words") {
  CHECK(SuspectedLine("n2", true, kOptions) ==
        "n2 is silent for 1.0 s: its host answers, the process does not (stopped, or its machine "
        "is overloaded?)");
  CHECK(SuspectedLine("n2", false, kOptions) ==
        "n2 is silent for 1.0 s: its host does not answer (network?)");
  CHECK(BackLine("n2", 3149ms) == "n2 is back after 3.1 s");
  CHECK(KilledLine("n2") == "n2 ended without a goodbye (killed, crashed or out of memory?)");
  CHECK(VanishedLine("n2", kOptions) ==
        "n2 vanished: its host has not answered for 4.0 s (host down or network cut)");
  CHECK(StoppedLine("n2", kOptions) ==
        "n2 is stopped: its host answers, the process has been silent for 4.0 s");
  CHECK(CutOffLine({"n0", "n1", "n3"}) == "this node is cut off: none of n0, n1, n3 answers");
}

TEST_CASE("clocks are compared by the exchange with the shortest round trip") {
  // The peer's clock is 1000 ahead of ours.
  const auto beat = [](std::int64_t sent_by_us, std::int64_t there, std::int64_t held) {
    Heartbeat result;
    result.echo_ns = sent_by_us;
    result.held_ns = held;
    result.sent_ns = sent_by_us + there + held + 1000;
    return result;
  };
  ClockEstimate estimate;
  CHECK(estimate.offset_ns() == 0);
  estimate.Add(Heartbeat(), 50);
  CHECK(estimate.offset_ns() == 0);
  estimate.Add(beat(100, 300, 10), 100 + 300 + 10 + 100);  // 300 there, 100 back
  CHECK(estimate.offset_ns() == -1100);
  estimate.Add(beat(1000, 20, 500), 1000 + 20 + 500 + 20);
  CHECK(estimate.offset_ns() == -1000);
  estimate.Add(beat(2000, 900, 0), 2000 + 900 + 10);
  CHECK(estimate.offset_ns() == -1000);
  // Much later a worse one is better than an old one whose clocks have drifted.
  const std::int64_t later = 3'000'000'000;
  estimate.Add(beat(later, 100, 0), later + 100 + 300);
  CHECK(estimate.offset_ns() == -900);
}

TEST_CASE("times that cannot be do not disturb the comparison of clocks") {
  ClockEstimate estimate;
  Heartbeat beat;
  beat.echo_ns = INT64_MIN;
  beat.held_ns = INT64_MAX;
  beat.sent_ns = INT64_MIN;
  estimate.Add(beat, 1'000'000);
  beat.echo_ns = 2'000'000;
  beat.held_ns = 0;
  beat.sent_ns = 5;
  estimate.Add(beat, 1'000'000);
  CHECK(estimate.offset_ns() == 0);
}
