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
namespace {

class HostCopyLane : public CopyLane {
 public:
  at::Tensor Beside(const at::Tensor& tensor) override {
    counted_.push_back(
        std::make_unique<CountedSideMemory>(static_cast<std::int64_t>(tensor.nbytes())));
    return at::empty_like(tensor);
  }

  void Queue(std::vector<LaneCopy> copies, std::function<void()> release,
             StateMovedCallback done) override {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(copies), std::move(release), std::move(done)});
    ++unfinished_;
    if (!thread_.joinable()) {
      const SignalsBlocked blocked;
      thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
    }
    wake_.notify_all();
  }

  void Wait() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return unfinished_ == 0; });
  }

 private:
  struct Job {
    std::vector<LaneCopy> copies;
    std::function<void()> release;
    StateMovedCallback done;
  };

  static void Run(Job& job) {
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
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      Run(job);
      job = {};  // released before a waiting thread continues
      lock.lock();
      if (--unfinished_ == 0) idle_.notify_all();
    }
  }

  std::vector<std::unique_ptr<CountedSideMemory>> counted_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable idle_;
  std::deque<Job> jobs_;
  std::size_t unfinished_ = 0;
  std::jthread thread_;  ///< destroyed first: stops after the copy that runs
};

}  // namespace

std::unique_ptr<CopyLane> MakeHostCopyLane() { return std::make_unique<HostCopyLane>(); }

}  // namespace troupe
