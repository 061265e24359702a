// The part of the simulated world that stands in for the system: processes, threads and the clock.
//
// A simulated thread is a thread of this program, but only one of them runs at a time. Another one is
// chosen where a thread waits, and at some calls that other threads may notice. Time stands still while
// any thread can run; then it jumps to the next moment at which something happens. The seed draws all
// choices, so it decides every event.
//
// The threads do not know any of this: c_library.cpp and c_network.cpp define the functions of the C
// library by which they wait, read clocks, and talk to each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <pthread.h>
#include <random>
#include <string>
#include <vector>

namespace troupe::testing {

/// Nanoseconds since the world began.
using SimTime = std::int64_t;
inline constexpr SimTime kNever = std::numeric_limits<SimTime>::max();
constexpr SimTime Ms(double milliseconds) { return static_cast<SimTime>(milliseconds * 1e6); }

/// A machine, which has one address.
struct Machine {
  int number = 0;
  std::uint32_t address = 0;  ///< in the byte order of the host
  SimTime clock_offset = 0;   ///< its steady clock, beyond the time of the world
};

struct SimProcess {
  int number = 0;
  std::string name;
  Machine* machine = nullptr;
  int pid = 0;
  bool is_alive = true;
  int exit_code = -1;           ///< -1: it was killed
  SimTime stopped_until = 0;    ///< none of its threads runs before
  std::int64_t calls = 0;       ///< of functions at which it may die, so far
  std::int64_t dies_at = -1;    ///< at this one; -1: at none
  std::vector<int> files = {};  ///< open descriptors of real files
};

struct SimThread {
  int number = 0;
  SimProcess* process = nullptr;  ///< null: the driver
  std::function<bool()> ready = nullptr;
  SimTime deadline = kNever;
  bool timed_out = false;
  bool ended = false;
  std::atomic<int> baton = 0;  ///< 1: it may run
  void* stack = nullptr;
  pthread_t real{};
};

class Kernel {
 public:
  explicit Kernel(std::uint64_t seed);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // For the driver, the thread that makes the world.

  Machine* AddMachine(std::uint32_t address);
  /// Starts a process whose first thread runs `body`, which returns the exit code.
  SimProcess* Start(const std::string& name, Machine* machine, std::function<int()> body);
  /// Runs the world until `done` returns true. Returns why that did not happen: "" if it did.
  std::string Run(const std::function<bool()>& done, SimTime limit);

  // For events, and for simulated threads.

  SimTime now() const { return now_; }
  /// Calls `event` at a time; the order of equal times is that of the calls. An event must not wait.
  void At(SimTime time, std::function<void()> event);
  void After(SimTime delay, std::function<void()> event) { At(now_ + delay, std::move(event)); }
  std::mt19937_64& random() { return random_; }
  /// A number from 0 to `count` - 1.
  std::int64_t Draw(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  /// Ends a process as SIGKILL does. If it is that of the calling thread, this call does not return
  /// unless it is made by an event.
  void Kill(SimProcess* process, int exit_code = -1);
  /// Adds an event to the record of this world.
  void Note(const std::string& text);
  /// Of all events so far.
  std::uint64_t digest() const { return digest_; }
  std::int64_t num_switches() const { return num_switches_; }
  /// The number of calls by which processes have changed anything outside of them.
  std::int64_t num_changes() const { return num_changes_; }

  // For the functions of the C library.

  /// The simulated thread that calls. Null if the caller is not simulated, or is code of the simulation.
  static SimThread* Here();
  static Kernel& Current();
  /// The process of the calling thread, also inside of this world's own code.
  static SimProcess* Running();
  /// Waits until `ready` returns true or `deadline`. Returns whether it did.
  bool Wait(std::function<bool()> ready, SimTime deadline = kNever);
  /// Lets other threads run.
  void Yield();
  /// Does so now and then.
  void MayYield();
  /// Called before a call by which a process changes anything outside of it: it may die here.
  void BeforeCall(const char* name);
  /// Reads a clock: every look takes a moment, so that a loop around one ends.
  SimTime Look();
  SimThread* NewThread(SimProcess* process);
  /// Blocks until the thread is chosen for the first time.
  static void Begin(SimThread* thread);
  /// Hands the baton on for good.
  void End(SimThread* thread);
  SimThread* Find(pthread_t real);

  /// Called when a process ends.
  std::function<void(SimProcess*)> ended = nullptr;
  bool is_disk_full = false;  ///< the one that all machines share

 private:
  SimThread* Choose();
  bool CanRun(SimThread& thread) const;
  void Switch(SimThread* from);
  [[noreturn]] static void Park();

  std::mt19937_64 random_;
  SimTime now_ = 0;
  SimTime limit_ = kNever;
  std::string stuck_;  ///< why nothing can happen any more
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<SimProcess>> processes_;
  std::vector<std::unique_ptr<SimThread>> threads_;  ///< the first one is the driver's
  std::vector<SimThread*> living_;
  std::multimap<SimTime, std::function<void()>> events_;
  std::uint64_t digest_ = 1469598103934665603ULL;
  std::int64_t num_switches_ = 0;
  std::int64_t num_changes_ = 0;
};

/// While it lives, calls of the C library by this thread mean the real ones.
class OutsideOfWorld {
 public:
  OutsideOfWorld();
  ~OutsideOfWorld();
  OutsideOfWorld(const OutsideOfWorld&) = delete;
  OutsideOfWorld& operator=(const OutsideOfWorld&) = delete;

 private:
  const bool before_;
};

}  // namespace troupe::testing
