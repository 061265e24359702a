// Ranks on emulated devices: one thread each, with a stream, memory and a place in a group.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/gpu/host/on_device.hpp"
#include "tests/transport/crew.hpp"
#include "transport/gpu/device_group.hpp"

namespace troupe::testing {

/// A communicator that a test gives memory of the host and that works on a device: copied there,
/// and back behind the call, in the order of the stream. Nothing but the end waits.
class ThroughDevice final : public Communicator {
 public:
  ThroughDevice(Communicator& inner, const gpu::Stream& stream, gpu::MemoryPool& pool)
      : inner_(inner), stream_(stream), pool_(pool) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void Barrier() override { inner_.Barrier(); }
  void Broadcast(void* data, std::size_t num_bytes, int root) override {
    const auto there = There(data, num_bytes);
    inner_.Broadcast(there.get(), num_bytes, root);
    Back(data, there, num_bytes);
  }
  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override {
    const auto num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
    const auto there = There(data, num_bytes);
    inner_.AllReduce(there.get(), count, dtype, op);
    Back(data, there, num_bytes);
  }
  void AllGather(const void* input, std::size_t num_bytes, void* output) override {
    const std::size_t all = num_bytes * static_cast<std::size_t>(size());
    const auto to = There(output, all);
    if (input == static_cast<std::byte*>(output) + static_cast<std::size_t>(rank()) * num_bytes) {
      inner_.AllGather(
          static_cast<std::byte*>(to.get()) + static_cast<std::size_t>(rank()) * num_bytes,
          num_bytes, to.get());
    } else {
      inner_.AllGather(There(input, num_bytes).get(), num_bytes, to.get());
    }
    Back(output, to, all);
  }
  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override {
    const auto num_bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
    const auto to = There(output, num_bytes);
    inner_.ReduceScatter(There(input, num_bytes * static_cast<std::size_t>(size())).get(), count,
                         dtype, op, to.get());
    Back(output, to, num_bytes);
  }
  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override {
    const auto sum = [](std::span<const std::size_t> sizes) {
      return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    };
    const auto to = There(output, sum(receive_bytes));
    inner_.AllToAll(There(input, sum(send_bytes)).get(), send_bytes, to.get(), receive_bytes);
    Back(output, to, sum(receive_bytes));
  }

 private:
  /// Pinned on the way, so that the copy takes its turn.
  std::shared_ptr<void> There(const void* data, std::size_t num_bytes) {
    if (num_bytes == 0) return nullptr;
    pinned_.push_back(gpu::AllocatePinned(num_bytes));
    std::memcpy(pinned_.back().get(), data, num_bytes);
    auto there = pool_.Allocate(num_bytes, stream_);
    gpu::Copy(stream_, there.get(), pinned_.back().get(), num_bytes, gpu::Way::kToDevice);
    return there;
  }
  void Back(void* data, const std::shared_ptr<void>& there, std::size_t num_bytes) {
    const auto pinned = gpu::AllocatePinned(num_bytes);
    gpu::Copy(stream_, pinned.get(), there.get(), num_bytes, gpu::Way::kToHost);
    stream_.Synchronize();
    if (num_bytes > 0) std::memcpy(data, pinned.get(), num_bytes);
    pinned_.clear();
  }

  Communicator& inner_;
  const gpu::Stream& stream_;
  gpu::MemoryPool& pool_;
  std::vector<std::shared_ptr<void>> pinned_;
};

/// One rank of a DeviceCrew, on its thread.
struct DeviceRank {
  int rank;
  const gpu::Stream& stream;
  gpu::MemoryPool& pool;
  Communicator& group;
  const std::string& description;
};

/// A group whose rank i computes on device devices[i], in process processes[i].
struct DeviceCrew {
  std::vector<int> devices;
  std::vector<ProcessId> processes = {};  // empty: one
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  DeviceCollectives* library = nullptr;
  std::chrono::milliseconds patience{10'000};
  std::function<bool(int rank)> stays_away = {};  // this one never joins

  /// Runs `body` on a thread per rank; result[i] is how rank i ended.
  std::vector<std::string> Run(const std::function<void(DeviceRank&)>& body) {
    const Watchdog watchdog(abort);
    const int size = static_cast<int>(devices.size());
    GroupWaits waits;
    GroupNames names{&waits, "tensor group of vision", {}};
    for (int rank = 0; rank < size; ++rank) names.members.push_back("rank " + std::to_string(rank));
    auto hosts = MakeLocalGroup(size, abort, names);
    std::vector<std::string> outcomes(hosts.size());
    std::atomic<int> running = size;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      threads.emplace_back([&, i, host = std::move(hosts[i])]() mutable {
        const int rank = static_cast<int>(i);
        outcomes[i] = OutcomeOf([&] {
          if (stays_away && stays_away(rank)) {
            --running;
            while (running > 0) std::this_thread::yield();
            return;
          }
          const gpu::Stream stream(devices[i]);
          gpu::MemoryPool pool(devices[i]);
          try {
            DeviceGroup group =
                MakeDeviceGroup({std::move(host), &stream, processes.empty() ? 0 : processes[i],
                                 names, abort, patience},
                                library);
            DeviceRank member{rank, stream, pool, *group.communicator, group.description};
            body(member);
          } catch (...) {
            --running;
            throw;
          }
          --running;
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }
};

}  // namespace troupe::testing
