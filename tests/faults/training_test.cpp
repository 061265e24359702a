// Four hosts train as one process does, whoever looks at their ports meanwhile.
#include "tests/faults/checks.hpp"
#include "tests/faults/stranger.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("three steps over four hosts have the losses of one process") {
  if (NoBed()) return;
  Bed bed({.settings = {"run.steps=3"}});
  const Job alone_job;
  Program alone(alone_job.Train({"run.steps=3"}, {}));
  const Ending alone_ending = alone.WaitForEnd(kPatience);
  INFO(alone.Transcript());
  REQUIRE(alone_ending.ended);
  CHECK(alone_ending.exit_code == 0);
  const auto endings = bed.WaitAll(kPatience);
  INFO(bed.Transcript());
  for (const Ending& ending : endings) {
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == 0);
    CHECK(ending.last_line.empty());
  }
  const auto expected = alone_job.Losses();
  const auto losses = bed.job().Losses();
  REQUIRE(expected.size() == 3);
  REQUIRE(losses.size() == 3);
  for (std::size_t step = 0; step < 3; ++step) {
    CHECK(losses[step] == Approx(expected[step]).margin(1e-6).epsilon(0));
  }
}

TEST_CASE("a scan of a host that trains finds its data port only, and does not disturb it") {
  if (NoBed()) return;
  Bed bed({.nodes = 2, .strangers = 1});
  bed.AwaitStep(2);
  for (int node = 0; node < 2; ++node) {
    const auto open = OpenPorts(bed.network().NameOf(2), Network::AddressOf(node));
    const auto listening = ListeningPorts(bed.network().NameOf(node));
    INFO(bed.Transcript());
    CHECK(open.size() == 1);  // UCX's: what it refuses is in tests/transport/ucx_stranger_test.cpp
    CHECK(open == listening);
  }
  const auto scanned = Clock::now();
  CHECK(bed[0].WaitForLine("step ", kPatience, scanned));
  bed[0].Signal(SIGINT);
  const auto endings = bed.WaitAll(kPatience);
  INFO(bed.Transcript());
  CHECK(endings[0].exit_code == 128 + SIGINT);
  CHECK(endings[1].ended);
}
