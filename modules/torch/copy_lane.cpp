#include "modules/torch/copy_lane.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cluster/signals_blocked.hpp"
#include "modules/memory_meter.hpp"
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
    const at::Tensor memory = at::empty({bytes}, at::kByte);
    const auto counted = std::make_shared<CountedSideMemory>(bytes);
    return at::from_blob(
        memory.data_ptr(), {bytes}, [memory, counted](void*) {}, at::kByte);
  }

  Job Queue(std::vector<LaneCopy> copies, std::function<void()> release,
            StateMovedCallback done) override {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(copies), std::move(release), std::move(done)});
    ++queued_;
    if (!thread_.joinable()) {
      const SignalsBlocked blocked;
      thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
    }
    wake_.notify_all();
    return queued_;
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

  void Loop(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [this] { return !jobs_.empty(); }) && !stop.stop_requested()) {
      Copies job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      Run(job);
      job = {};  // released before a waiting thread continues
      lock.lock();
      ++finished_;
      progress_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable progress_;
  std::deque<Copies> jobs_;
  Job queued_ = 0;
  Job finished_ = 0;
  std::jthread thread_;  ///< destroyed first: stops after the copy that runs
};

}  // namespace

std::unique_ptr<CopyLane> MakeHostCopyLane() { return std::make_unique<HostCopyLane>(); }

}  // namespace troupe
