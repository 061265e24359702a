// Jobs that cannot begin: all processes report why, and none waits for ever.

#include <deque>
#include <span>

#include "cluster/bytes.hpp"
#include "cluster/handshake.hpp"
#include "cluster/run_key.hpp"
#include "tests/cluster/connect.hpp"
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
  bool Said(std::size_t place, const std::string& text) const {
    return programs_[place]->WaitForLine(text, 1s).has_value();
  }

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

  missing.CheckCause(0, "n1 did not join within 5 s (joined at 10.77.0.1:7001: none)");
  CHECK(missing.job().Runs().empty());
  CHECK(missing.Said(0, "removed " + missing.job().File("runs/shapes-")));
  wrong_host.CheckCause(0, "cannot reach 10.77.0.99:7002 within 5 s: ");
  taken.CheckCause(0, "cannot listen on 10.77.0.1:7003: ");
  wrong_key.CheckCause(0, "could not prove the run key");
  wrong_key.CheckCause(1, "10.77.0.1:7004 does not have this run key");
  for (const std::size_t place : {0, 1}) {
    different.CheckCause(place, "run.seed is 8, n0 has 7");
  }
}

TEST_CASE("a node that waits for the first one says so, also with a launcher") {
  const bool launched = GENERATE(false, true);
  const Job job;
  const auto more =
      launched ? std::vector<std::string>{"--restarts", "1"} : std::vector<std::string>();
  const Program second(job.Node(1, 2, FreeAddress(), {"cluster.join_timeout_s=4"}, more));
  const bool waits = second.WaitForLine("waiting for n0", kPatience).has_value();
  const Ending ending = second.WaitForEnd(kPatience);
  INFO(second.Transcript());
  CHECK(waits);
  CHECK(ending.exit_code == 4);
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

namespace {

/// Has the constants of each protocol of a process: ours, UCX's, CAF's; and noise.
std::vector<std::vector<std::byte>> HostilePackets() {
  ByteWriter ucx;
  ucx.Raw(std::as_bytes(std::span("\x78\x56\x34\x12\xbe\xba\xfe\xca", 8)));  // its magic number
  ucx.U8(0);
  ucx.Raw(std::as_bytes(std::span("\x14\0\0\0", 4)));
  ucx.Raw(std::vector<std::byte>(120));
  ByteWriter caf;
  caf.U32(0);  // a handshake of BASP, of which the payload is said to be large
  caf.U32(0x7fffffff);
  caf.U64(4);
  caf.Raw(std::vector<std::byte>(48, std::byte{1}));
  auto proof = EncodeOpening(Opening());
  proof.resize(proof.size() + 32, std::byte{0x5a});
  return {{}, EncodeOpening(Opening()), proof, ucx.Take(), caf.Take(), RandomBytes(200, 7)};
}

/// `count` connections to `address`, a few at a time, each with one of the packets.
void Assault(const Address& address, int count) {
  const auto packets = HostilePackets();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::deque<Socket> open;
      for (int i = t; i < count; i += 4) {
        try {
          const Deadline soon = Clock::now() + 5s;
          Socket socket = testing::Connect(address, soon);
          socket.Write(packets[static_cast<std::size_t>(i) % packets.size()], soon);
          open.push_back(std::move(socket));
        } catch (const SocketError&) {
          // Refused or reset.
        }
        if (open.size() > 200) open.pop_front();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Memory of the process that is not in files, in KiB.
int ResidentKib(pid_t process) {
  return std::stoi(
      Shell("awk '/^RssAnon/ {print $2}' /proc/" + std::to_string(process) + "/status"));
}

}  // namespace

TEST_CASE("10,000 hostile packets at each port do no harm, take no memory and are counted") {
  if (NoBed()) return;
  constexpr int kPackets = 10'000;
  constexpr int kMostGrowthKib = 8 * 1024;
  const Network network(3);
  const Job job;
  const std::string seed = Network::AddressOf(0) + ":7420";
  const std::vector<std::string> settings = {"run.steps=40"};
  Program first(network.On(0, job.Node(0, 2, seed, settings)));
  REQUIRE(first.WaitForLine("waiting for n1", kPatience));
  const auto assault = [&](int port) {
    OnHost(network.NameOf(2), [&] {
      Assault({Network::AddressOf(0), static_cast<std::uint16_t>(port)}, kPackets);
    });
  };
  const int before = ResidentKib(first.pid());
  assault(7420);
  CHECK(ResidentKib(first.pid()) - before < kMostGrowthKib);

  Program second(network.On(1, job.Node(1, 2, seed, settings)));
  // What a run keeps for itself it has after some steps.
  REQUIRE(first.WaitForLine("step 12/", kPatience));
  const auto refused = first.WaitForLine(" connections that could not prove the run key", 1s);
  REQUIRE(refused);
  CHECK(std::stoi(refused->text.substr(std::string("refused ").size())) > kPackets * 9 / 10);
  const int in_training = ResidentKib(first.pid());
  for (const int port : ListeningPorts(network.NameOf(0))) assault(port);
  const int after = ResidentKib(first.pid());
  CHECK(after - in_training < kMostGrowthKib);
  const Ending first_ending = first.WaitForEnd(kPatience);
  const Ending second_ending = second.WaitForEnd(kPatience);
  INFO("n0:\n" << first.Transcript() << "n1:\n" << second.Transcript());
  CHECK(first_ending.exit_code == 0);
  CHECK(second_ending.exit_code == 0);
  CHECK(job.Losses().size() == 40);
}
