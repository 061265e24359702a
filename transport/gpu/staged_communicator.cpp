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

  void Run(const Collective& mine) override {
    if (mine.call.operation == Operation::kBarrier) {
      Guarded([&] { AwaitStream(*member_.stream, member_.abort); });
      return member_.host->Run(mine);
    }
    const std::size_t input_bytes = InputBytes(mine, rank(), size());
    const std::size_t output_bytes = OutputBytes(mine, size());
    MemoryOf memory;
    Guarded([&] {
      memory = LocateMemory(mine.input, input_bytes, mine.output, output_bytes,
                            member_.stream->device());
    });
    if (memory.kind == MemoryKind::kMixed) {
      RaiseFor(member_, memory.error);
      throw std::invalid_argument(member_.names.group + ": " + memory.error);
    }
    if (memory.kind != MemoryKind::kDevice) return member_.host->Run(mine);
    const bool in_place = mine.call.operation == Operation::kBroadcast ||
                          mine.call.operation == Operation::kAllReduce;
    Collective on_host = mine;
    Guarded([&] {
      std::byte* const pinned = Pinned(in_place ? output_bytes : input_bytes + output_bytes);
      on_host.input = pinned;
      on_host.output = in_place ? pinned : pinned + input_bytes;
      gpu::Copy(*member_.stream, pinned, mine.input, input_bytes, gpu::Way::kToHost);
      AwaitStream(*member_.stream, member_.abort);
    });
    member_.host->Run(on_host);
    Guarded([&] {
      gpu::Copy(*member_.stream, mine.output, on_host.output, output_bytes, gpu::Way::kToDevice);
    });
  }

 private:
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
