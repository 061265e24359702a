#include "cluster/silence.hpp"

#include <catch2/catch.hpp>

#include "cluster/heartbeat.hpp"
#include "cluster/own_connections.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const WatchOptions kOptions{250ms, 1000ms, 4000ms};

Judgement Of(Presence presence, std::chrono::nanoseconds length,
             HostSign host = HostSign::kAnswers) {
  return Judge(presence, {length, host, 0ms}, kOptions);
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
  CHECK(Of(Presence::kSuspected, 4000ms, HostSign::kNothing) == Judgement::kVanished);
  CHECK(Of(Presence::kSuspected, 4000ms, HostSign::kSendsOnly) == Judgement::kUnreachable);
  CHECK(Of(Presence::kPresent, 4000ms) == Judgement::kStopped);
}

TEST_CASE("who is lost or has left is not judged again") {
  for (const Presence presence : {Presence::kLost, Presence::kLeft})
    for (const auto length : {0ms, 2000ms, 9000ms})
      for (const HostSign host : {HostSign::kAnswers, HostSign::kSendsOnly, HostSign::kNothing})
        CHECK(Of(presence, length, host) == Judgement::kNothing);
}

TEST_CASE("a host answers unless something sent is stuck for half of the silence") {
  CHECK(SignOf(0s, 4s, 4s) == HostSign::kAnswers);
  CHECK(SignOf(2s, 4s, 4s) == HostSign::kAnswers);
  CHECK(SignOf(2001ms, 4s, 4s) == HostSign::kNothing);
}

TEST_CASE("a host whose packets come while ours are stuck is cut off in one direction") {
  CHECK(SignOf(4s, 100ms, 4s) == HostSign::kSendsOnly);
  CHECK(SignOf(4s, 3000ms, 4s) == HostSign::kSendsOnly);
  CHECK(SignOf(4s, 3001ms, 4s) == HostSign::kNothing);
  // Even if some of what comes are heartbeats.
  const Silence spoken{100ms, SignOf(4s, 100ms, 100ms), 4s};
  CHECK(Judge(Presence::kPresent, spoken, kOptions) == Judgement::kUnreachable);
  const Silence earlier{100ms, SignOf(3999ms, 100ms, 100ms), 3999ms};
  CHECK(Judge(Presence::kPresent, earlier, kOptions) == Judgement::kNothing);
}

TEST_CASE("a connection is stuck from when something waits that is not acknowledged") {
  const TcpProgress::Time start{};
  TcpProgress progress(start);
  TcpState state;
  state.established = true;
  progress.Observe(state, start + 1s);
  CHECK(progress.stuck(start + 1s) == 0s);
  state.unacknowledged = true;
  progress.Observe(state, start + 2s);
  CHECK(progress.stuck(start + 3s) == 2s);
  ++state.acknowledged_bytes;  // slow, but it gets through
  progress.Observe(state, start + 3s);
  CHECK(progress.stuck(start + 3s) == 0s);
  state.window_open = false;  // the process does not read: no fault of the path
  progress.Observe(state, start + 9s);
  CHECK(progress.stuck(start + 9s) == 0s);
}

TEST_CASE("a connection is quiet while no segment comes, not even a repetition") {
  const TcpProgress::Time start{};
  TcpProgress progress(start);
  TcpState state;
  progress.Observe(state, start + 2s);
  CHECK(progress.quiet(start + 2s) == 2s);
  ++state.received_segments;
  progress.Observe(state, start + 3s);
  CHECK(progress.quiet(start + 4s) == 1s);
}

TEST_CASE("of all connections of a process the stuck ones are found, by both ends") {
  const PathProgress::Time start{};
  OwnConnection moving{{"10.0.0.1", 1}, {"10.0.0.2", 2}, {}};
  moving.state.established = true;
  moving.state.unacknowledged = true;
  OwnConnection stuck = moving;
  stuck.peer.port = 3;
  stuck.state.segment_bytes = 1448;
  PathProgress paths;
  std::vector<PathProgress::Stuck> found;
  for (int second = 0; second <= 4; ++second) {
    CHECK(found.empty());
    ++moving.state.acknowledged_bytes;
    found = paths.Look({moving, stuck}, start + std::chrono::seconds(second), 4s);
  }
  REQUIRE(found.size() == 1);
  CHECK(found[0].peer == Address{"10.0.0.2", 3});
  CHECK(found[0].segment_bytes == 1448);
}

TEST_CASE("only if all others vanish at the same time are we cut off") {
  const Silence vanished{3600ms, HostSign::kNothing, 0ms};
  const Silence stopped{3600ms, HostSign::kAnswers, 0ms};
  const Silence earlier{3000ms, HostSign::kNothing, 0ms};
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
  CHECK(SuspectedLine("n2", HostSign::kAnswers, kOptions) ==
        "n2 is silent for 1.0 s: its host answers, the process does not (stopped, or its machine "
        "is overloaded?)");
  CHECK(SuspectedLine("n2", HostSign::kSendsOnly, kOptions) ==
        "n2 is silent for 1.0 s: packets come from its host, but ours do not reach it (network?)");
  CHECK(SuspectedLine("n2", HostSign::kNothing, kOptions) ==
        "n2 is silent for 1.0 s: its host does not answer (network?)");
  CHECK(BackLine("n2", 3149ms) == "n2 is back after 3.1 s");
  CHECK(KilledLine("n2") ==
        "n2: its process ended without saying goodbye (killed, crashed or out of memory?)");
  CHECK(VanishedLine("n2", kOptions) ==
        "n2: it vanished: its host has not answered for 4.0 s (host down or network cut)");
  CHECK(UnreachableLine("n2", kOptions) ==
        "n2: packets come from its host, but ours have not reached it for 4.0 s (network cut in "
        "one direction)");
  CHECK(LargePacketsLine("n2", {"10.0.0.1", 4000}, {"10.0.0.2", 5000}, 1448, kOptions) ==
        "n2: heartbeats pass, but the connection from 10.0.0.1:4000 to 10.0.0.2:5000 has "
        "delivered nothing for 4.0 s: does the path drop packets with 1448 bytes of data (MTU)?");
  CHECK(StoppedLine("n2", kOptions) ==
        "n2: it is stopped: its host answers, but the process has been silent for 4.0 s");
  CHECK(CutOffLine({"n0", "n1", "n3"}) == "n0, n1, n3: none of them answers: this node is cut off");
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
