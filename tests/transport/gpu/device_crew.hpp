// Ranks on emulated devices: one thread each, with a stream, memory and a place in a group.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "tests/gpu/emulated/machine.hpp"
#include "tests/gpu/host/on_device.hpp"
#include "tests/transport/crew.hpp"
#include "transport/collective_arguments.hpp"
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
  void Run(const Collective& mine) override {
    const std::size_t input_bytes = InputBytes(mine, rank(), size());
    const std::size_t output_bytes = OutputBytes(mine, size());
    const bool in_place = mine.input == mine.output;
    const std::size_t own = static_cast<std::size_t>(rank()) * input_bytes;
    std::shared_ptr<void> from;
    Collective there = mine;
    if (mine.call.operation == Operation::kReduceScatter && output_bytes > 0 &&
        mine.output == mine.input + static_cast<std::size_t>(rank()) * output_bytes) {
      from = There(mine.input, input_bytes);
      there.input = static_cast<std::byte*>(from.get());
      there.output = static_cast<std::byte*>(from.get()) + (mine.output - mine.input);
      inner_.Run(there);
      return Back(mine.output, there.output, output_bytes);
    }
    const auto to = There(mine.output, output_bytes);
    auto* const output = static_cast<std::byte*>(to.get());
    there.output = output;
    if (in_place) {
      there.input = output;
    } else if (mine.call.operation == Operation::kAllGather && mine.input == mine.output + own) {
      there.input = output + own;
    } else {
      from = There(mine.input, input_bytes);
      there.input = static_cast<std::byte*>(from.get());
    }
    inner_.Run(there);
    Back(mine.output, output, output_bytes);
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
  void Back(void* data, const void* there, std::size_t num_bytes) {
    const auto pinned = gpu::AllocatePinned(num_bytes);
    gpu::Copy(stream_, pinned.get(), there, num_bytes, gpu::Way::kToHost);
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
