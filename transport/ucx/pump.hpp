// The one thread that calls UCX: it runs commands, lets the worker progress, and sleeps when there
// is nothing to do.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "transport/ucx/handles.hpp"

namespace troupe {

class UcxPump {
 public:
  using Clock = std::chrono::steady_clock;
  using Command = std::function<void()>;

  /// What the thread calls, besides commands.
  struct Hooks {
    /// After every round; a time before which it wants to be called again, if there is one.
    std::function<std::optional<Clock::time_point>()> after_round;
    /// UCX or a command threw: the thread is about to end.
    std::function<void(const std::string& error)> died;
  };

  /// `spin`: how long to look for work before going to sleep. The worker must outlive this object.
  UcxPump(UcxWorker& worker, std::chrono::microseconds spin) : worker_(worker), spin_(spin) {}
  UcxPump(const UcxPump&) = delete;
  UcxPump& operator=(const UcxPump&) = delete;
  ~UcxPump() { Stop(); }

  /// Once; what is posted before waits for it.
  void Start(Hooks hooks);
  /// Runs `command` on the thread, in order, never inside this call. False: the thread has ended,
  /// or will end without it. Thread-safe.
  bool Post(Command command);
  /// Runs what has been posted, then ends the thread. Not to be called on it.
  void Stop();
  bool OnThread() const { return std::this_thread::get_id() == id_; }

 private:
  void Run();
  void Loop();
  bool RunCommands();
  void Sleep(int descriptor, std::optional<Clock::time_point> until);

  UcxWorker& worker_;
  const std::chrono::microseconds spin_;
  Hooks hooks_;
  std::mutex mutex_;
  std::deque<Command> commands_;  // guarded by mutex_
  bool stopping_ = false;         // guarded by mutex_
  std::deque<Command> running_;
  std::atomic<std::thread::id> id_;
  std::thread thread_;
};

}  // namespace troupe
