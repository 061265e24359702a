// Four hosts train as one process does, whatever connects to their ports meanwhile.
#include <functional>
#include <thread>

#include "tests/faults/checks.hpp"
#include "tests/faults/stranger.hpp"

using namespace troupe::testing;
using troupe::Address;
using troupe::Socket;
using namespace std::chrono_literals;

namespace {

/// The job trains on, and ends in order.
void CheckGoesOn(Bed& bed) {
  CHECK(bed[0].WaitForLine("step ", kPatience, Clock::now()));
  bed[0].Signal(SIGINT);
  const auto endings = bed.WaitAll(kPatience);
  INFO(bed.Transcript());
  CHECK(endings[0].exit_code == 128 + SIGINT);
  CHECK(endings[1].ended);
  CHECK(endings[1].exit_code == 0);
}

/// Process 0 listens for latecomers as long as the job may take to meet, here 20 s.
const std::string kShortMeeting = "cluster.join_timeout_s=20";

/// Whether `ports` gives `count` of them at last.
bool LeavesPorts(std::size_t count, const std::function<std::vector<int>()>& ports) {
  const auto end = Clock::now() + 60s;
  while (ports().size() != count) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(500ms);
  }
  return true;
}

}  // namespace

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

TEST_CASE("a scan of a host that trains finds no port, and does not disturb it") {
  if (NoBed()) return;
  Bed bed({.nodes = 2, .settings = {kShortMeeting}, .strangers = 1});
  bed.AwaitStep(2);
  CHECK(bed[0].WaitForLine("over proven tcp", kPatience));
  for (int node = 0; node < 2; ++node) {
    CHECK(LeavesPorts(0, [&] { return ListeningPorts(bed.network().NameOf(node)); }));
    const auto open = OpenPorts(bed.network().NameOf(2), Network::AddressOf(node));
    INFO(bed.Transcript());
    CHECK(open.empty());
  }
  CheckGoesOn(bed);
}

TEST_CASE("bytes that abort UCX do not reach its port from another address") {
  if (NoBed()) return;
  Bed bed({.nodes = 2, .settings = {"transport.tcp=ucx", kShortMeeting}, .strangers = 1});
  bed.AwaitStep(2);
  CHECK(bed[0].WaitForLine("UCX listens on a port", kPatience));
  for (int node = 0; node < 2; ++node) {
    REQUIRE(LeavesPorts(1, [&] { return ListeningPorts(bed.network().NameOf(node)); }));
    const auto ports = ListeningPorts(bed.network().NameOf(node));
    const Address address{Network::AddressOf(node), static_cast<std::uint16_t>(ports[0])};
    bool reached = false;
    OnHost(bed.network().NameOf(2), [&] {
      Visit(address, Clock::now() + 3s, [&](Socket& socket) {
        reached = true;
        socket.Write(BytesThatAbortUcx(), Clock::now() + 1s);
      });
    });
    CHECK_FALSE(reached);
  }
  CheckGoesOn(bed);
}

TEST_CASE("processes of one machine have no port either, and their bells can be rung by anybody") {
  for (const std::string ucx_tls : {"auto", "none"}) {
    INFO(ucx_tls);
    const LocalBed bed({.nodes = 2, .settings = {"transport.ucx_tls=" + ucx_tls, kShortMeeting}});
    bed.AwaitStep(2);
    const auto processes = bed.Processes();
    REQUIRE(processes.size() == 2);
    for (const pid_t process : processes)
      CHECK(LeavesPorts(0, [&] { return ListeningPorts(process); }));
    const auto bells = DatagramSockets(processes);
    CHECK(bells.size() == (ucx_tls == "auto" ? 2 : 0));
    for (const std::string& bell : bells) SendDatagrams(bell, BytesThatAbortUcx(), 10'000);
    const auto rung = Clock::now();
    CHECK(bed.program().WaitForLine("step ", kPatience, rung));
    bed.program().Signal(SIGINT);
    const Ending ending = bed.program().WaitForEnd(kPatience);
    INFO(bed.program().Transcript());
    CHECK(ending.exit_code == 128 + SIGINT);
  }
}
