// Jobs that cannot begin: everybody is told why, and nobody waits for ever.

#include "cluster/handshake.hpp"
#include "cluster/run_key.hpp"
#include "tests/faults/checks.hpp"
#include "tests/faults/stranger.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// The code of docs/cli.md for processes that did not meet.
constexpr int kExitNotMet = 4;

/// One job of two processes on two hosts that fails to begin, at a port of its own.
class FailedJoin {
 public:
  FailedJoin(const Network& network, int port) : network_(network), port_(port) {}

  void Start(int node, const std::vector<std::string>& settings = {},
             const std::vector<std::string>& more = {}, const std::string& join = "") {
    std::vector<std::string> all = {"cluster.join_timeout_s=5"};
    all.insert(all.end(), settings.begin(), settings.end());
    const std::string seed = Network::AddressOf(0) + ":" + std::to_string(port_);
    const auto words = job_.Node(node, 2, join.empty() ? seed : join, all, more);
    programs_.push_back(std::make_unique<Program>(network_.On(node, words)));
  }

  const Job& job() const { return job_; }

  /// The program that was started at `place` ended for that reason. The bound is 10 s beyond the
  /// deadline; a busy machine takes its time to get that far.
  void CheckCause(std::size_t place, const std::string& cause) {
    const Ending ending = programs_[place]->WaitForEnd(kPatience);
    INFO(cause << "\n" << programs_[place]->Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == kExitNotMet);
    CHECK_THAT(ending.last_line, Catch::StartsWith("troupe: ") && Catch::Contains(cause));
    CHECK(std::chrono::duration<double>(ending.at - started_).count() < 25.0);
  }

 private:
  const Network& network_;
  int port_;
  Job job_;
  std::vector<std::unique_ptr<Program>> programs_;
  Clock::time_point started_ = Clock::now();
};

}  // namespace

TEST_CASE("processes that cannot meet say why, all of them, and end") {
  if (NoBed()) return;
  const Network network(2);
  // All at a time: most of it is waiting.
  FailedJoin missing(network, 7001);
  missing.Start(0);
  FailedJoin wrong_host(network, 7002);
  wrong_host.Start(1, {}, {}, "10.77.0.99:7002");
  FailedJoin taken(network, 7003);
  Socket squatter;
  OnHost(network.NameOf(0), [&] { squatter = Socket::Listen({Network::AddressOf(0), 7003}); });
  taken.Start(0);
  FailedJoin wrong_key(network, 7004);
  RunKey::Generate().WriteFile(wrong_key.job().File("other_key"));
  wrong_key.Start(0);
  wrong_key.Start(1, {}, {"--key-file", wrong_key.job().File("other_key")});
  FailedJoin different(network, 7005);
  different.Start(0);
  different.Start(1, {"run.seed=8"});

  missing.CheckCause(0, "n1 did not join within 5 s (10.77.0.1:7001 heard of nobody)");
  wrong_host.CheckCause(0, "cannot reach 10.77.0.99:7002 within 5 s: ");
  taken.CheckCause(0, "cannot listen on 10.77.0.1:7003: ");
  wrong_key.CheckCause(0, "could not prove the run key");
  wrong_key.CheckCause(1, "10.77.0.1:7004 does not have this run key");
  for (const std::size_t place : {0, 1}) {
    different.CheckCause(place, "run.seed is 8, n0 has 7");
  }
}

TEST_CASE("strangers at the join port do not keep a job from meeting and training") {
  if (NoBed()) return;
  const Network network(3);
  const Job job;
  const std::string seed = Network::AddressOf(0) + ":7420";
  const std::vector<std::string> settings = {"run.steps=2"};
  Program first(network.On(0, job.Node(0, 2, seed, settings)));
  REQUIRE(first.WaitForLine("waiting for n1", kPatience));

  const Address address{Network::AddressOf(0), 7420};
  std::jthread strangers([&] {
    OnHost(network.NameOf(2), [&] {
      const Deadline until = Clock::now() + 6s;
      std::vector<std::thread> visits;
      const auto visit = [&](const std::function<void(Socket&)>& behave) {
        visits.emplace_back([=] { Visit(address, until, behave); });
      };
      for (unsigned i = 0; i < 200; ++i) visit([](Socket&) {});
      for (unsigned i = 0; i < 8; ++i) {
        visit([=](Socket& socket) { socket.Write(RandomBytes(5000, i), until); });
        visit([=](Socket& socket) {
          for (const std::byte byte : EncodeOpening(Opening())) {
            socket.Write({&byte, 1}, until);
            std::this_thread::sleep_for(50ms);  // a drip, never silent for long
          }
        });
        visit([=](Socket& socket) {
          auto bytes = EncodeOpening(Opening());
          bytes.resize(bytes.size() + (1 << 20), std::byte{0xff});  // lengths beyond any bound
          socket.Write(bytes, until);
        });
      }
      for (std::thread& thread : visits) thread.join();
    });
  });
  const auto started = Clock::now();
  Program second(network.On(1, job.Node(1, 2, seed, settings)));
  const Ending first_ending = first.WaitForEnd(kPatience);
  const Ending second_ending = second.WaitForEnd(kPatience);
  const double seconds = std::chrono::duration<double>(first_ending.at - started).count();
  strangers.join();
  INFO("n0:\n" << first.Transcript() << "n1:\n" << second.Transcript());
  REQUIRE(first_ending.ended);
  REQUIRE(second_ending.ended);
  CHECK(first_ending.exit_code == 0);
  CHECK(second_ending.exit_code == 0);
  CHECK(job.Losses().size() == 2);
  CHECK(seconds < 30.0);
}
