// The single thread of a plane. Runs commands, lets the plane's worker progress, and sleeps when
// idle.
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

/// The worker that a pump drives. Only the pump's thread calls it, except Signal.
class PumpWorker {
 public:
  virtual ~PumpWorker() = default;
  /// Makes as much progress as possible without waiting. Returns whether anything happened.
  virtual bool Progress() = 0;
  /// A descriptor that becomes readable when an armed worker has work.
  virtual int EventDescriptor() const = 0;
  /// Prepares for a wait. False: there is work right now.
  virtual bool Arm() = 0;
  /// Ends the next or current wait for the descriptor. Thread-safe.
  virtual void Signal() = 0;
};

class Pump {
 public:
  using Clock = std::chrono::steady_clock;
  using Command = std::function<void()>;

  /// Callbacks on the pump's thread.
  struct Hooks {
    /// Called after every round. Returns the latest time of its next call, if any.
    std::function<std::optional<Clock::time_point>()> after_round;
    /// The worker or a command threw: the thread is about to end.
    std::function<void(const std::string& error)> died;
  };

  /// `spin`: time to poll before sleeping. The worker must outlive this object.
  Pump(PumpWorker& worker, std::chrono::microseconds spin) : worker_(worker), spin_(spin) {}
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  ~Pump() { Stop(); }

  /// Starts the thread. Call it once; commands posted before wait for it.
  void Start(Hooks hooks);
  /// Runs `command` on the thread, in order, never inside this call. False: the thread has ended,
  /// or will end without running it. Thread-safe.
  bool Post(Command command);
  /// Runs all posted commands, then ends the thread. Must not be called on that thread.
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
