// Processes of a job as threads of a test: each joins on its own, on the loopback, at a free port.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "cluster/join.hpp"

namespace troupe::testing {

/// Makes a process one of a job that goes on after its first loss.
inline void Again(JoinOptions& options) {
  options.lasting = true;
  options.self.generation = 1;
}

/// How one process's Join ended.
struct Outcome {
  std::optional<Joined> joined;
  std::string error;
  JoinFault fault = JoinFault::kOther;
};

class Meeting {
 public:
  explicit Meeting(int num_processes, std::chrono::milliseconds timeout = std::chrono::seconds(20))
      : num_processes_(num_processes), timeout_(timeout), outcomes_(64) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() {
    for (std::thread& thread : threads_) thread.join();
  }

  /// As process 0 sees it; not before Start(0).
  Address seed() const { return seed_; }

  JoinOptions Options(ProcessId process) const {
    JoinOptions options;
    options.self.process = process;
    options.self.num_processes = num_processes_;
    options.self.name = "n" + std::to_string(process);
    options.self.build = "0.1 abc";
    options.self.config = "a = 1\nb = 2\n";
    options.self.host = "boot=1";
    options.self.pid = 100 + process;
    options.seed = seed_;
    options.run_directory = process == 0 ? "runs/x" : "";
    options.timeout = timeout_;
    return options;
  }

  /// Starts a process; `change` may make it different. Returns its place among the outcomes.
  /// Process 0 is listening when this returns.
  std::size_t Start(ProcessId process, const std::function<void(JoinOptions&)>& change = {},
                    const std::optional<RunKey>& key = std::nullopt) {
    JoinOptions options = Options(process);
    if (process == 0 && seed_.port == 0) options.seed = {"127.0.0.1", 0};
    if (change) change(options);
    options.print = [this, name = options.self.name](const std::string& line) {
      const std::lock_guard lock(mutex_);
      said_.push_back(name + ": " + line);
    };
    auto listening = std::make_shared<std::promise<Address>>();
    auto where = listening->get_future();
    if (process == 0)
      options.listening = [listening](const Address& address) { listening->set_value(address); };
    const std::size_t place = threads_.size();
    threads_.emplace_back([this, options, place, run_key = key.value_or(key_)] {
      try {
        outcomes_[place].joined = Join(run_key, options);
      } catch (const JoinError& error) {
        outcomes_[place].error = error.what();
        outcomes_[place].fault = error.fault;
      }
    });
    if (process == 0) seed_ = where.get();
    return place;
  }

  /// Waits for all that were started.
  std::vector<Outcome>& Finish() {
    for (std::thread& thread : threads_) thread.join();
    outcomes_.resize(threads_.size());
    threads_.clear();
    return outcomes_;
  }

  std::vector<std::string> said() const {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  const RunKey& key() const { return key_; }

 private:
  int num_processes_;
  std::chrono::milliseconds timeout_;
  RunKey key_ = RunKey::Generate();
  Address seed_{"127.0.0.1", 0};
  mutable std::mutex mutex_;
  std::vector<std::string> said_;
  std::vector<Outcome> outcomes_;  ///< after the answers to late processes
  std::vector<std::thread> threads_;
};

/// All connections of a peer, in one order on both sides.
inline std::vector<Socket*> ConnectionsOf(Peer& peer) {
  std::vector<Socket*> sockets{&peer.control, &peer.heartbeat};
  if (peer.tensors) sockets.push_back(&peer.tensors);
  return sockets;
}

/// Each process talks to each on all their connections, and hears who it is. `outcomes` by process.
inline void CheckMesh(std::vector<Outcome>& outcomes) {
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (Outcome& outcome : outcomes)
    for (Peer& peer : outcome.joined->peers)
      for (std::size_t i = 0; Socket * socket : ConnectionsOf(peer)) {
        const std::array<std::byte, 2> hello{static_cast<std::byte>(&outcome - outcomes.data()),
                                             static_cast<std::byte>(i++)};
        socket->Write(hello, deadline);
      }
  for (Outcome& outcome : outcomes)
    for (Peer& peer : outcome.joined->peers)
      for (std::size_t i = 0; Socket * socket : ConnectionsOf(peer)) {
        std::array<std::byte, 2> hello{};
        socket->Read(hello, deadline);
        CHECK(std::to_integer<int>(hello[0]) == peer.process);
        CHECK(std::to_integer<std::size_t>(hello[1]) == i++);
      }
}

}  // namespace troupe::testing
