// Paths between hosts that are at fault themselves: cut in one direction, or only for large
// packets.
#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

constexpr int kExitNotMet = 4;

/// Room for an Ethernet header less than the handshake's packets need, and less than all others.
constexpr int kSmallPackets = 600;

/// The last line of `node`, which has ended with `exit_code` within `seconds` of the fault.
std::string LastLine(const Bed& bed, int node, int exit_code, double seconds) {
  const Ending ending = bed[node].WaitForEnd(kPatience);
  INFO(bed.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == exit_code);
  const auto line = bed.WaitForLine(node, ending.last_line, 1s);
  REQUIRE(line);
  CHECK(bed.SinceFault(line->at) < seconds);
  return ending.last_line;
}

}  // namespace

TEST_CASE("a network that is cut in one direction is called that, not a stopped process") {
  if (NoBed()) return;
  Bed bed({.nodes = 2});
  bed.AwaitStep(2);
  bed.CutOneWay(0, 1);
  // Each tells the other, as far as it can, and the first to say it is believed.
  const auto vanished =
      Catch::StartsWith("troupe: lost n0: it vanished: its host has not answered");
  CHECK_THAT(LastLine(bed, 1, kExitLost, 7.0), vanished);
  CHECK_THAT(LastLine(bed, 0, kExitLost, 7.0),
             vanished || Catch::StartsWith("troupe: lost n1: packets come from its host, but ours "
                                           "have not reached it for 4.0 s"));
  CHECK(bed.WaitForLine(0, "warning: n1 is silent for 1.0 s: packets come from its host", 1s));
}

TEST_CASE("a path that begins to drop large packets ends the job as a loss, with the connection") {
  if (NoBed()) return;
  Bed bed({.nodes = 2});
  bed.AwaitStep(2);
  bed.LimitPackets(1, kSmallPackets);
  for (const int node : {0, 1}) {
    const std::string line = LastLine(bed, node, kExitLost, 8.0);
    CHECK_THAT(line, Catch::StartsWith("troupe: lost n") &&
                         Catch::Contains("heartbeats pass, but") && Catch::Contains("(MTU)?"));
  }
}

TEST_CASE("a path that drops large packets from the start is named while the job meets") {
  if (NoBed()) return;
  const Network network(2);
  network.LimitPackets(1, kSmallPackets);
  const Job job;
  const std::string seed = Network::AddressOf(0) + ":7420";
  Program first(network.On(0, job.Node(0, 2, seed, {})));
  REQUIRE(first.WaitForLine("waiting for n1", kPatience));
  const auto started = Clock::now();
  Program second(network.On(1, job.Node(1, 2, seed, {})));
  const auto check = [&](const Program& program, const std::string& cause) {
    const Ending ending = program.WaitForEnd(kPatience);
    INFO(program.Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == kExitNotMet);
    CHECK(ending.last_line == "troupe: " + cause +
                                  ", though the run key was proven: does the path drop large "
                                  "packets (MTU)?");
    // The start of the second program included.
    CHECK(std::chrono::duration<double>(ending.at - started).count() < 30.0);
  };
  check(second, "n0 (10.77.0.1:7420): nothing sent to it arrives there");
  check(first, "n1 (10.77.0.2): nothing it sends arrives here");
}

TEST_CASE("a process that is stopped before the job meets is named by its launcher in seconds") {
  const LocalBed bed({.nodes = 2});
  const auto deadline = Clock::now() + kPatience;
  while (bed.Processes().size() < 2 && Clock::now() < deadline) std::this_thread::sleep_for(5ms);
  REQUIRE(bed.Processes().size() == 2);
  // Until it runs its own program, its launcher waits for it (vfork). Loading takes longer than
  // that.
  std::this_thread::sleep_for(100ms);
  REQUIRE(kill(bed.Processes()[1], SIGSTOP) == 0);
  const auto stopped = Clock::now();
  const Ending ending = bed.program().WaitForEnd(kPatience);
  INFO(bed.program().Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == kExitLost);
  CHECK_THAT(ending.last_line, Catch::StartsWith("troupe: lost n1: stopped by a signal for 6 s"));
  CHECK(std::chrono::duration<double>(ending.at - stopped).count() < 20.0);
}
