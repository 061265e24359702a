// A thread that runs tasks one after the other, in the order in which they were given.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe {

enum class TaskPriority {
  kNormal,
  kLow,  ///< other threads that want the core go first
};

/// Thread-safe. The thread starts with the first task and receives no signals.
class TaskThread {
 public:
  explicit TaskThread(TaskPriority priority = TaskPriority::kNormal) : priority_(priority) {}
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  /// Waits for the task that runs; drops those that have not begun.
  ~TaskThread() = default;

  /// `task` must not throw.
  void Run(std::function<void()> task);
  /// Waits until all tasks given so far have ended. Returns whether they have within `limit`.
  bool WaitFor(std::chrono::nanoseconds limit);

 private:
  void Loop(const std::stop_token& stop);

  const TaskPriority priority_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> tasks_;
  std::jthread thread_;  ///< destroyed first: it uses the others
};

}  // namespace troupe
