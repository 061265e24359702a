// The one thread of a plane: it runs commands, lets the plane's worker progress, and sleeps when
// there is nothing to do.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace troupe {

/// What a pump drives. All calls are its thread's, but for Signal.
class PumpWorker {
 public:
  virtual ~PumpWorker() = default;
  /// Does what can be done at once. Whether anything happened.
  virtual bool Progress() = 0;
  /// A descriptor that becomes readable when an armed worker has something to do.
  virtual int EventDescriptor() const = 0;
  /// False: there is something to do right now.
  virtual bool Arm() = 0;
  /// Thread-safe: the next or current wait for the descriptor ends.
  virtual void Signal() = 0;
};

class Pump {
 public:
  using Clock = std::chrono::steady_clock;
  using Command = std::function<void()>;

  /// What the thread calls, besides commands.
  struct Hooks {
    /// After every round; a time before which it wants to be called again, if there is one.
    std::function<std::optional<Clock::time_point>()> after_round;
    /// The worker or a command threw: the thread is about to end.
    std::function<void(const std::string& error)> died;
  };

  /// `spin`: how long to look for work before going to sleep. The worker must outlive this object.
  Pump(PumpWorker& worker, std::chrono::microseconds spin) : worker_(worker), spin_(spin) {}
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  ~Pump() { Stop(); }

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

  PumpWorker& worker_;
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
