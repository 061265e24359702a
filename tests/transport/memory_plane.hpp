// Data planes of several processes in one: messages are copied by the receiver's delivery thread in
// an order drawn from a seed. It is stricter than a real plane: labels that are open twice, sizes
// that differ and memory that changes while it is sent are faults.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "transport/abort_signal.hpp"
#include "transport/data_plane.hpp"

namespace troupe::testing {

class MemoryNetwork {
 public:
  /// Messages up to this size are taken when they are sent, as an eager protocol does.
  static constexpr std::size_t kEagerBytes = 4096;

  MemoryNetwork(int num_processes, std::shared_ptr<AbortSignal> abort, unsigned seed) {
    for (int process = 0; process < num_processes; ++process)
      planes_.push_back(std::make_unique<Plane>(*this, process, num_processes,
                                                seed * 64 + static_cast<unsigned>(process)));
    subscription_ = abort->Subscribe([this](const Failure& cause) { Abort(cause); });
  }
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;
  ~MemoryNetwork() {
    subscription_.reset();
    Stop();
  }
  /// Nothing is delivered any more; the planes may still be called.
  void Stop() {
    for (auto& plane : planes_) plane->Stop();
  }

  DataPlane* plane(int process) { return planes_[static_cast<std::size_t>(process)].get(); }

  /// What was done wrong so far, the first of it; empty if nothing.
  std::string fault() const {
    const std::lock_guard lock(mutex_);
    return fault_;
  }
  /// Sends without a receive and receives without a send.
  std::size_t num_unmatched() const {
    const std::lock_guard lock(mutex_);
    return sends_.size() + receives_.size();
  }
  /// The most sends from one process to another that were ever ahead of their receives.
  std::size_t max_early() const {
    const std::lock_guard lock(mutex_);
    return max_early_;
  }
  /// Bytes that have arrived in process `process`.
  std::uint64_t bytes_received(ProcessId process) const {
    const std::lock_guard lock(mutex_);
    const auto found = received_.find(process);
    return found == received_.end() ? 0 : found->second;
  }
  /// From now on everything that arrives does so this much later.
  void Slow(std::chrono::milliseconds delay) { delay_ = delay; }
  /// Fails what process `process` receives from now on.
  void FailReceivesOf(ProcessId process, const Failure& error) {
    const std::lock_guard lock(mutex_);
    failing_[process] = error;
  }
  /// From now on messages that are not eager never arrive, and their senders get no callback.
  void StallLargeSends() {
    const std::lock_guard lock(mutex_);
    stalling_ = true;
  }

 private:
  using Key = std::tuple<ProcessId, ProcessId, std::uint64_t, std::uint64_t>;  // from, to, label

  struct SendEntry {
    Buffer buffer;
    std::uint64_t checksum = 0;
    std::function<void()> sent;
  };
  struct ReceiveEntry {
    Buffer destination;
    std::string what;
    std::function<void()> received;
    OnFailure failed;
  };

  class Plane final : public DataPlane {
   public:
    Plane(MemoryNetwork& network, ProcessId self, int num_processes, unsigned seed)
        : network_(network),
          self_(self),
          num_processes_(num_processes),
          random_(seed),
          thread_([this] { Run(); }) {}

    ProcessId self() const override { return self_; }
    int num_processes() const override { return num_processes_; }
    void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override {
      network_.Send({self_, to, label.stream, label.sequence}, std::move(buffer), std::move(sent));
    }
    void Receive(Reception it) override {
      network_.Receive({it.from, self_, it.label.stream, it.label.sequence},
                       {std::move(it.destination), std::move(it.what), std::move(it.received),
                        std::move(it.failed)});
    }

    void Later(std::function<void()> task) {
      {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
      }
      changed_.notify_one();
    }
    void Stop() {
      if (!thread_.joinable()) return;
      Later({});
      thread_.join();
    }

   private:
    void Run() {
      for (;;) {
        std::function<void()> task;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [this] { return !tasks_.empty(); });
          const auto place = static_cast<std::ptrdiff_t>(random_() % tasks_.size());
          std::swap(tasks_[static_cast<std::size_t>(place)], tasks_.back());
          task = std::move(tasks_.back());
          tasks_.pop_back();
        }
        if (!task) return;
        std::this_thread::sleep_for(network_.delay_.load());
        task();
      }
    }

    MemoryNetwork& network_;
    const ProcessId self_;
    const int num_processes_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    std::mt19937 random_;
    std::thread thread_;
  };

  Plane& at(ProcessId process) { return *planes_[static_cast<std::size_t>(process)]; }

  static std::uint64_t ChecksumOf(const Buffer& buffer) {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(buffer.data()), buffer.num_bytes()});
  }

  void Fault(const std::string& text) {
    if (fault_.empty()) fault_ = text;
  }

  void Send(const Key& key, Buffer buffer, std::function<void()> sent) {
    SendEntry entry{buffer, ChecksumOf(buffer), std::move(sent)};
    if (buffer.num_bytes() <= kEagerBytes) {
      entry.buffer =
          Buffer::Allocate({static_cast<std::int64_t>(buffer.num_bytes())}, DType::kUInt8);
      std::memcpy(entry.buffer.data(), buffer.data(), buffer.num_bytes());
      if (entry.sent) at(std::get<0>(key)).Later(std::exchange(entry.sent, nullptr));
    }
    const std::lock_guard lock(mutex_);
    if (std::get<0>(key) == std::get<1>(key)) Fault("a process sends to itself");
    if (aborted_ || (stalling_ && entry.buffer.num_bytes() > kEagerBytes)) return;
    const auto receive = receives_.find(key);
    if (receive != receives_.end()) {
      Deliver(key, std::move(entry), std::move(receive->second));
      receives_.erase(receive);
      return;
    }
    if (!sends_.emplace(key, std::move(entry)).second) Fault("a send's label is in use");
    std::size_t& early = early_[{std::get<0>(key), std::get<1>(key)}];
    max_early_ = std::max(max_early_, ++early);
  }

  void Receive(const Key& key, ReceiveEntry entry) {
    const std::lock_guard lock(mutex_);
    if (aborted_) return Fail(std::get<1>(key), std::move(entry), cause_);
    const auto failing = failing_.find(std::get<1>(key));
    if (failing != failing_.end()) return Fail(std::get<1>(key), std::move(entry), failing->second);
    const auto send = sends_.find(key);
    if (send != sends_.end()) {
      --early_[{std::get<0>(key), std::get<1>(key)}];
      Deliver(key, std::move(send->second), std::move(entry));
      sends_.erase(send);
      return;
    }
    if (!receives_.emplace(key, std::move(entry)).second) Fault("a receive's label is in use");
  }

  void Fail(ProcessId process, ReceiveEntry entry, const Failure& cause) {
    at(process).Later([entry = std::move(entry), cause] { entry.failed(cause); });
  }

  void Deliver(const Key& key, SendEntry send, ReceiveEntry receive) {
    const ProcessId from = std::get<0>(key);
    const ProcessId to = std::get<1>(key);
    at(to).Later([this, from, to, send = std::move(send), receive = std::move(receive)] {
      {
        const std::lock_guard lock(mutex_);
        if (send.buffer.num_bytes() != receive.destination.num_bytes())
          Fault(receive.what + ": the sizes differ");
        if (aborted_ || send.buffer.num_bytes() != receive.destination.num_bytes())
          return Fail(receive);
        if (ChecksumOf(send.buffer) != send.checksum)
          Fault(receive.what + ": changed while it was sent");
        std::memcpy(receive.destination.data(), send.buffer.data(), send.buffer.num_bytes());
        received_[to] += send.buffer.num_bytes();
      }
      receive.received();
      if (!send.sent) return;
      at(from).Later([this, send, what = receive.what] {
        {
          const std::lock_guard lock(mutex_);
          if (aborted_) return;
          if (ChecksumOf(send.buffer) != send.checksum)
            Fault(what + ": changed before the sender was told that it was sent");
        }
        send.sent();
      });
    });
  }
  void Fail(const ReceiveEntry& entry) {
    at(0).Later([failed = entry.failed, cause = aborted_ ? cause_ : Failure("the sizes differ")] {
      failed(cause);
    });
  }

  void Abort(const Failure& cause) {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    cause_ = cause;
    sends_.clear();
    for (auto& [key, entry] : receives_) Fail(std::get<1>(key), std::move(entry), cause);
    receives_.clear();
  }

  std::atomic<std::chrono::milliseconds> delay_{std::chrono::milliseconds(0)};
  mutable std::mutex mutex_;
  std::map<Key, SendEntry> sends_;        // that wait for their receives
  std::map<Key, ReceiveEntry> receives_;  // that wait for their sends
  std::map<std::pair<ProcessId, ProcessId>, std::size_t> early_;
  std::size_t max_early_ = 0;
  std::map<ProcessId, std::uint64_t> received_;
  std::map<ProcessId, Failure> failing_;
  bool stalling_ = false;
  bool aborted_ = false;
  Failure cause_;
  std::string fault_;
  std::vector<std::unique_ptr<Plane>> planes_;
  std::shared_ptr<void> subscription_;
};

}  // namespace troupe::testing
