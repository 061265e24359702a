#include "transport/gpu/reached.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "gpu/check.hpp"

namespace troupe {

void AwaitStream(const gpu::Stream& stream, const std::shared_ptr<AbortSignal>& abort) {
  // Outlives this call: the device may answer after an abort has ended it.
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

}  // namespace troupe
