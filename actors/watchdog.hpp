// Detects, on its own thread, failures that no message can report: an actor that does not return
// from a handler, a pass that does not end, and a job that has stalled.
//
//   a handler runs longer than     stuck_after; devices, feeds and the director: pass_timeout
//   messages stay unread           stuck_after, by an actor with its own thread
//   nothing moves for              stall_after: no process handles messages or runs anything but
//                                  waits in collectives (checked only where `stalled` is set)
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/activity.hpp"
#include "cluster/watch.hpp"
#include "transport/abort_signal.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

struct WatchdogConfig {
  std::string process;  ///< "n1", for texts
  std::chrono::milliseconds interval{250};
  std::chrono::nanoseconds stuck_after{std::chrono::seconds(5)};
  std::chrono::nanoseconds pass_timeout{std::chrono::seconds(300)};
  std::chrono::nanoseconds stall_after{std::chrono::seconds(10)};
  std::shared_ptr<ActivityTable> actors;
  std::shared_ptr<GroupWaits> waits;  ///< of this process's ranks in collectives; may be null
  std::shared_ptr<AbortSignal> abort;
  /// The sum of the other processes; may be empty. See Watch::Last.
  std::function<Vitals()> others;
  std::function<void()> looking;  ///< called at every check; may be empty
  /// Called once when the job has stalled; empty where another process checks for stalls.
  std::function<void(std::chrono::nanoseconds since)> stalled;
};

/// The vitals of this process, for its heartbeats.
Vitals VitalsOf(const ActivityTable& actors, const GroupWaits* waits);

class Watchdog {
 public:
  explicit Watchdog(WatchdogConfig config);
  ~Watchdog();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
