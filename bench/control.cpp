// Measures a request to an actor of another process on this machine, against a round trip of 64
// bytes over a plain TCP socket in the same run.
//
//   bench_control [ROUNDS]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/connections.hpp"
#include "actors/node_actor.hpp"
#include "messages/system.hpp"
#include "tests/cluster/connect.hpp"
#include "trace/analyze/median.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSamples = 7;

Deadline Soon() { return Clock::now() + std::chrono::seconds(30); }

/// A connected pair over loopback; each process keeps one end.
struct Ends {
  Socket accepted;
  Socket connected;
};
Ends Connected() {
  Socket listener = Socket::Listen({"127.0.0.1", 0});
  Ends ends;
  ends.connected = testing::Connect(listener.local_address(), Soon());
  ends.accepted = testing::Accept(listener, Soon());
  return ends;
}

/// Microseconds per round trip of 64 bytes.
double PlainRounds(Socket& socket, int rounds) {
  std::array<std::byte, 64> bytes{};
  const auto begin = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    socket.Write(bytes, Soon());
    socket.Read(bytes, Soon());
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / rounds;
}

void Echo(Socket& socket, int rounds) {
  std::array<std::byte, 64> bytes{};
  for (int i = 0; i < rounds; ++i) {
    socket.Read(bytes, Soon());
    socket.Write(bytes, Soon());
  }
}

/// An actor system with a Node without a job; it answers ReportWaits at once.
struct Side {
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::shared_ptr<TensorStore> tensors = std::make_shared<TensorStore>(abort);
  SystemConfig config{tensors, true};
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  Node node = system.spawn(RunNode, [this] {
    NodeConfig c;
    c.processes = std::make_shared<const ProcessPlan>(ProcessPlan::Single(1));
    c.tensors = tensors;
    c.abort = abort;
    return c;
  }());
  Connections connections{system, node};
  ~Side() { self->send_exit(node, caf::exit_reason::user_shutdown); }
};

double ActorRounds(Side& side, const Node& peer, int rounds) {
  const auto begin = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    side.self->request(peer, std::chrono::seconds(10), ReportWaits{})
        .receive([](const Waits&) {},
                 [](const caf::error& e) { throw std::runtime_error(FailureOf(e).text); });
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / rounds;
}

int Run(int rounds) {
  Ends plain = Connected();
  Ends control = Connected();
  const pid_t child = fork();  // before any thread is started
  if (child == 0) {
    {
      Side side;
      side.connections.Accept(std::move(control.accepted));
      for (int i = 0; i < kSamples + 1; ++i) Echo(plain.accepted, rounds);
      std::array<std::byte, 1> end{};
      plain.accepted.Read(end, Clock::now() + std::chrono::minutes(5));
    }
    _exit(0);
  }
  std::vector<double> sockets, actors, ratios;
  {
    Side side;
    const Node peer = side.connections.Connect(std::move(control.connected),
                                               std::chrono::seconds(10), *side.abort);
    PlainRounds(plain.connected, rounds);
    ActorRounds(side, peer, rounds);
    for (int i = 0; i < kSamples; ++i) {
      sockets.push_back(PlainRounds(plain.connected, rounds));
      actors.push_back(ActorRounds(side, peer, rounds));
      ratios.push_back(actors.back() / sockets.back());
    }
    plain.connected.Write(std::array<std::byte, 1>{}, Soon());
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf(
      "there and back between two processes, %d rounds, medians of %d\n"
      "  64 bytes over a socket   %8.1f us\n"
      "  a request to an actor    %8.1f us\n"
      "  ratio                    %8.1f   (%.1f to %.1f)\n",
      rounds, kSamples, Median(sockets), Median(actors), Median(ratios),
      *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000);
}
