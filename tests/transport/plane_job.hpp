// Several planes in one process, connected with each other, and what their callbacks reported.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/crew.hpp"
#include "tests/transport/socket_pairs.hpp"
#include "transport/tcp/plane.hpp"
#include "transport/ucx/plane.hpp"

namespace troupe::testing {

/// Waits up to 5 s for an event without a notification.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Counts callbacks of any thread and keeps their errors, until a thread has waited for them.
class Outcomes {
 public:
  explicit Outcomes(std::shared_ptr<AbortSignal> abort)
      : subscription_(abort->Subscribe([this](const Failure&) { changed_.notify_all(); })),
        abort_(std::move(abort)) {}

  std::function<void()> Good() {
    return [this] { End(""); };
  }
  OnFailure Bad() {
    return [this](const Failure& failure) { End(failure.text); };
  }
  void End(const std::string& error) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (!error.empty()) errors_.push_back(error);
    changed_.notify_all();
  }
  /// Whether `count` more have ended, good or bad, within 10 s.
  bool Await(int count) {
    std::unique_lock lock(mutex_);
    const bool all =
        changed_.wait_for(lock, std::chrono::seconds(10), [&] { return count_ >= taken_ + count; });
    taken_ += count;
    return all;
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::vector<std::string> TakeErrors() {
    const std::lock_guard lock(mutex_);
    return std::exchange(errors_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  int taken_ = 0;
  std::vector<std::string> errors_;
  std::shared_ptr<void> subscription_;
  std::shared_ptr<AbortSignal> abort_;
};

/// Stands in place of UCX's transports for the plane over proven TCP.
inline const std::string kProven = "proven";

struct PlaneJobOptions {
  int processes = 2;
  std::string tls = "posix,sysv,cma";  ///< or kProven
  Verify verify = Verify::kHeader;
  int odd_secret = -1;    ///< the process that has another secret
  bool connected = true;  ///< wait until UCX has connected all
  decltype(PlaneSettings::to_host) to_host = {};
};

inline UcxOptions UcxOptionsOf(ProcessId self, int processes, const std::string& tls) {
  UcxOptions options;
  options.self = self;
  for (int i = 0; i < processes; ++i) options.names.push_back("n" + std::to_string(i));
  options.tls = tls;
  options.net_devices = "lo";
  options.secret.fill(std::byte{42});
  return options;
}

/// The plane that `options.tls` stands for; `connections` are those of kProven.
inline std::unique_ptr<Plane> MakePlane(const UcxOptions& options,
                                        std::vector<TcpConnection> connections) {
  if (options.tls != kProven) return std::make_unique<UcxPlane>(options);
  return std::make_unique<TcpPlane>(TcpOptions{options, std::move(connections), "proven tcp"});
}

class PlaneJob {
 public:
  /// What stands between a store and its plane; attaches itself to the store. Null: nothing.
  using Between = std::function<std::unique_ptr<TensorCarrier>(TensorStore&, Plane&)>;

  explicit PlaneJob(const PlaneJobOptions& wanted = {}, const Between& between = {}) {
    SocketPairs sockets(wanted.tls == kProven ? wanted.processes : 0);
    for (int i = 0; i < wanted.processes; ++i) {
      stores.push_back(std::make_unique<TensorStore>(abort));
      UcxOptions options = UcxOptionsOf(i, wanted.processes, wanted.tls);
      options.verify = wanted.verify;
      if (i == wanted.odd_secret) options.secret.fill(std::byte{7});
      options.abort = abort;
      options.store = stores.back().get();
      options.to_host = wanted.to_host;
      options.peer_failed = [this, i](ProcessId peer, const std::string& reason) {
        failures.End("n" + std::to_string(i) + " lost n" + std::to_string(peer) + ": " + reason);
      };
      planes.push_back(MakePlane(
          options, wanted.tls == kProven ? sockets.Take(i) : std::vector<TcpConnection>()));
      if (between) {
        carriers.push_back(between(*stores.back(), *planes.back()));
      } else {
        stores.back()->Attach(planes.back().get());
      }
      addresses.push_back(planes.back()->address());
    }
    for (const auto& plane : planes) plane->Connect(addresses);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (const auto& plane : planes)
      while (wanted.connected && plane->stats().peers_connected + 1 < planes.size()) {
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("not connected");
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
  }
  /// As processes end: all say so, then all close.
  ~PlaneJob() {
    for (const auto& plane : planes) plane->Leave();
    for (const auto& store : stores) store->Detach();
    std::vector<std::thread> threads;
    for (const auto& plane : planes) threads.emplace_back([&plane] { plane->Close(); });
    for (std::thread& thread : threads) thread.join();
  }
  Plane& operator[](std::size_t process) { return *planes[process]; }
  TensorStore& store(std::size_t process) { return *stores[process]; }

  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  Outcomes sends{abort};
  Outcomes receives{abort};
  Outcomes failures{abort};  ///< peers that were reported
  std::vector<std::vector<std::byte>> addresses;
  std::vector<std::unique_ptr<TensorStore>> stores;
  std::vector<std::unique_ptr<Plane>> planes;
  std::vector<std::unique_ptr<TensorCarrier>> carriers;
};

/// Bytes that differ by seed and by place.
inline Buffer Pattern(std::int64_t num_bytes, std::uint64_t seed) {
  Buffer buffer = Buffer::Allocate({num_bytes}, DType::kUInt8);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (std::int64_t i = 0; i < num_bytes; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    buffer.data()[i] = static_cast<std::byte>(state >> 56);
  }
  return buffer;
}

/// Ones all over, so that what has not been written shows.
inline Buffer Blank(std::int64_t num_bytes) {
  Buffer buffer = Buffer::Allocate({num_bytes}, DType::kUInt8);
  std::fill_n(buffer.data(), num_bytes, std::byte{1});
  return buffer;
}

inline bool SameBytes(const Buffer& a, const Buffer& b) {
  return a.num_bytes() == b.num_bytes() && std::equal(a.data(), a.data() + a.num_bytes(), b.data());
}

}  // namespace troupe::testing
