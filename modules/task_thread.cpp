#include "modules/task_thread.hpp"

#include <future>
#include <memory>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "cluster/signals_blocked.hpp"

namespace troupe {

void TaskThread::Run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;
    thread_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
  }
  tasks_.push_back(std::move(task));
  wake_.notify_one();
}

bool TaskThread::WaitFor(std::chrono::nanoseconds limit) {
  const auto ended = std::make_shared<std::promise<void>>();
  std::future<void> all = ended->get_future();
  Run([ended] { ended->set_value(); });
  return all.wait_for(limit) == std::future_status::ready;
}

void TaskThread::Loop(const std::stop_token& stop) {
  constexpr int kLowNiceness = 10;
  // On Linux this is the priority of the thread alone.
  if (priority_ == TaskPriority::kLow) setpriority(PRIO_PROCESS, gettid(), kLowNiceness);
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !tasks_.empty(); }) && !stop.stop_requested()) {
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = {};  // what it holds is released before the next begins
    lock.lock();
  }
}

}  // namespace troupe
