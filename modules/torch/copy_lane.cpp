#include "modules/torch/copy_lane.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <utility>

#include "modules/memory_meter.hpp"
#include "modules/task_thread.hpp"
#include "trace/clock.hpp"

namespace troupe {

void LetGo(const at::Tensor& tensor) {
  const at::Storage& storage = tensor.storage();
  storage.set_data_ptr(at::DataPtr(nullptr, tensor.device()));
}

void TakeMemory(const at::Tensor& tensor) {
  const at::Storage& storage = tensor.storage();
  storage.set_data_ptr(storage.allocator()->allocate(storage.nbytes()));
}

namespace {

class HostCopyLane : public CopyLane {
 public:
  at::Tensor HostBytes(std::int64_t bytes) override {
    // Large pages: the first copy touches all of them, and each that it touches costs a fault.
    constexpr std::size_t kPage = std::size_t{2} << 20;
    const std::size_t size = (static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage;
    const std::shared_ptr<void> memory(std::aligned_alloc(kPage, size), std::free);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory.get(), size, MADV_HUGEPAGE);
    const auto counted = std::make_shared<CountedSideMemory>(bytes);
    return at::from_blob(
        memory.get(), {bytes}, [memory, counted](void*) {}, at::kByte);
  }

  Job Queue(std::vector<LaneCopy> copies, std::function<void()> release,
            StateMovedCallback done) override {
    thread_.Run(
        [this, job = Copies{std::move(copies), std::move(release), std::move(done)}]() mutable {
          Run(job);
          job = {};  // released before a waiting thread continues
          const std::lock_guard lock(mutex_);
          ++finished_;
          progress_.notify_all();
        });
    return ++queued_;
  }

  bool Wait(Job job) override {
    std::unique_lock lock(mutex_);
    const bool waits = finished_ < job;
    if (waits) progress_.wait(lock, [this, job] { return finished_ >= job; });
    return waits;
  }

 private:
  struct Copies {
    std::vector<LaneCopy> copies;
    std::function<void()> release;
    StateMovedCallback done;
  };

  static void Run(Copies& job) {
    WorkTimes times;
    times.begin_ns = NowNs();
    for (const LaneCopy& copy : job.copies) {
      std::memcpy(copy.to.data_ptr(), copy.from.data_ptr(), copy.from.nbytes());
    }
    job.copies.clear();
    if (job.release) job.release();
    times.end_ns = NowNs();
    job.done(times);
  }

  std::mutex mutex_;
  std::condition_variable progress_;
  Job queued_ = 0;  ///< used by the rank's thread alone
  Job finished_ = 0;
  TaskThread thread_;  ///< destroyed first: stops after the copy that runs
};

}  // namespace

std::unique_ptr<CopyLane> MakeHostCopyLane() { return std::make_unique<HostCopyLane>(); }

}  // namespace troupe
