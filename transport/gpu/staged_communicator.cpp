#include "transport/gpu/staged_communicator.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "gpu/check.hpp"
#include "gpu/copies.hpp"
#include "gpu/device.hpp"
#include "gpu/memory.hpp"
#include "transport/collective_arguments.hpp"
#include "transport/gpu/memory_kind.hpp"

namespace troupe {
namespace {

/// Sleeps until all work queued on `stream` is done. Throws gpu::CudaError with the device's error
/// text; Aborted if `abort` (may be null) is raised meanwhile.
void AwaitStream(const gpu::Stream& stream, const std::shared_ptr<AbortSignal>& abort) {
  // Outlives this call, since the device may call back after an abort has ended it.
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    bool aborted = false;
    std::optional<std::string> outcome;
  };
  const auto wait = std::make_shared<Outcome>();
  stream.OnOutcome([wait](const std::string& error) {
    {
      const std::lock_guard lock(wait->mutex);
      wait->outcome = error;
    }
    wait->changed.notify_all();
  });
  std::shared_ptr<void> subscription;
  if (abort != nullptr) {
    subscription = abort->Subscribe([wait](const Failure&) {
      {
        const std::lock_guard lock(wait->mutex);
        wait->aborted = true;
      }
      wait->changed.notify_all();
    });
  }
  std::unique_lock lock(wait->mutex);
  wait->changed.wait(lock, [&] { return wait->aborted || wait->outcome; });
  if (!wait->outcome) {
    lock.unlock();
    abort->ThrowIfRaised();
  }
  if (!wait->outcome->empty()) throw gpu::CudaError(*wait->outcome);
}

/// The group of the host checks the arguments.
class StagedCommunicator final : public Communicator {
 public:
  explicit StagedCommunicator(DeviceMember member) : member_(std::move(member)) {}
  StagedCommunicator(const StagedCommunicator&) = delete;
  StagedCommunicator& operator=(const StagedCommunicator&) = delete;
  ~StagedCommunicator() override {
    // Copies may still use the pinned memory.
    if (pinned_ != nullptr) TROUPE_CUDA_NO_THROW(cudaStreamSynchronize(member_.stream->get()));
  }

  int rank() const override { return member_.host->rank(); }
  int size() const override { return member_.host->size(); }

  void Barrier() override {
    Guarded([&] { AwaitStream(*member_.stream, member_.abort); });
    member_.host->Barrier();
  }

  void Broadcast(void* data, std::size_t num_bytes, int root) override {
    Run(
        {data, rank() == root ? num_bytes : 0}, {data, num_bytes},
        [&](const void*, void* output) { member_.host->Broadcast(output, num_bytes, root); },
        Room::kOne);
  }

  void AllReduce(void* data, std::int64_t count, DType dtype, ReduceOp op) override {
    const std::size_t num_bytes = BytesOfCount(count, dtype);
    Run(
        {data, num_bytes}, {data, num_bytes},
        [&](const void*, void* output) { member_.host->AllReduce(output, count, dtype, op); },
        Room::kOne);
  }

  void AllGather(const void* input, std::size_t num_bytes, void* output) override {
    Run(
        {input, num_bytes}, {output, num_bytes * static_cast<std::size_t>(size())},
        [&](const void* from, void* to) { member_.host->AllGather(from, num_bytes, to); },
        Room::kTwo);
  }

  void ReduceScatter(const void* input, std::int64_t count, DType dtype, ReduceOp op,
                     void* output) override {
    const std::size_t num_bytes = BytesOfCount(count, dtype);
    Run(
        {input, num_bytes * static_cast<std::size_t>(size())}, {output, num_bytes},
        [&](const void* from, void* to) {
          member_.host->ReduceScatter(from, count, dtype, op, to);
        },
        Room::kTwo);
  }

  void AllToAll(const void* input, std::span<const std::size_t> send_bytes, void* output,
                std::span<const std::size_t> receive_bytes) override {
    Run(
        {input, Total(send_bytes)}, {output, Total(receive_bytes)},
        [&](const void* from, void* to) {
          member_.host->AllToAll(from, send_bytes, to, receive_bytes);
        },
        Room::kTwo);
  }

 private:
  enum class Room { kOne, kTwo };  ///< whether input and output of the host's call share memory
  struct Source {
    const void* data;
    std::size_t num_bytes;
  };
  struct Target {
    void* data;
    std::size_t num_bytes;
  };

  void Run(const Source& input, const Target& output,
           const std::function<void(const void* from, void* to)>& on_host, Room room) {
    MemoryOf memory;
    Guarded([&] {
      memory = LocateMemory(input.data, input.num_bytes, output.data, output.num_bytes,
                            member_.stream->device());
    });
    if (memory.kind == MemoryKind::kMixed) {
      RaiseFor(member_, memory.error);
      throw std::invalid_argument(member_.names.group + ": " + memory.error);
    }
    if (memory.kind != MemoryKind::kDevice) return on_host(input.data, output.data);
    std::byte* from = nullptr;
    std::byte* to = nullptr;
    Guarded([&] {
      from = Pinned(room == Room::kTwo ? input.num_bytes + output.num_bytes : output.num_bytes);
      to = room == Room::kTwo ? from + input.num_bytes : from;
      gpu::Copy(*member_.stream, from, input.data, input.num_bytes, gpu::Way::kToHost);
      AwaitStream(*member_.stream, member_.abort);
    });
    on_host(from, to);
    Guarded([&] {
      gpu::Copy(*member_.stream, output.data, to, output.num_bytes, gpu::Way::kToDevice);
    });
  }

  std::byte* Pinned(std::size_t num_bytes) {
    if (num_bytes > pinned_bytes_) {
      AwaitStream(*member_.stream, member_.abort);  // the smaller one may be in use
      pinned_ = gpu::AllocatePinned(num_bytes);
      pinned_bytes_ = num_bytes;
    }
    return static_cast<std::byte*>(pinned_.get());
  }

  /// Runs `body`. A device failure ends the job, since the others wait for this member.
  void Guarded(const std::function<void()>& body) {
    try {
      const gpu::DeviceGuard guard(member_.stream->device());
      body();
    } catch (const gpu::CudaError& error) {
      RaiseFor(member_, error.what());
      throw;
    }
  }

  const DeviceMember member_;
  std::shared_ptr<void> pinned_;
  std::size_t pinned_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> MakeStagedCommunicator(DeviceMember member) {
  return std::make_unique<StagedCommunicator>(std::move(member));
}

}  // namespace troupe
