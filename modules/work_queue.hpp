// Where a rank's work runs when that is not the thread that asks for it: a stream of a GPU.
// Programs queue their work by calling the library they compute with, and return before it has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/row_memory.hpp"

namespace troupe {

/// Lanes run beside each other; what is on one of them runs in the order in which it was queued.
enum class Lane : std::uint8_t {
  kCompute,
  kCollectives,  ///< sums of gradients, beside what other modules of the rank compute
};
inline constexpr std::size_t kNumLanes = 2;

/// When a piece of work ran, by the clock of trace/clock.hpp.
struct WorkTimes {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string error;  ///< in the device's words, where work that tells its times has failed
};

/// One per rank; used on that rank's thread only. What Here and Allocate give may be used by what
/// is queued on their lane after them, and elsewhere when that has run: nothing of another lane may
/// be used before its `done`.
class WorkQueue : public RowMemory {
 public:
  /// First on the rank's thread: what it queues from now on comes here, on kCompute unless a piece
  /// says otherwise.
  virtual void BindThread() = 0;

  /// A piece of work begins here, on `lane` with all that is queued and asked for up to its End.
  /// `name` is what the device's own tools show:
  /// "vision.s0/microbatch 3/forward".
  virtual void Begin(const std::string& name, Lane lane) = 0;
  /// It ends here. `done` is called once, when all of it has run (with "") or the device has failed
  /// (in its words), on a thread that must not wait nor queue work: it sends a message. Empty:
  /// nobody asks, since queueing it has failed halfway.
  virtual void End(std::function<void(const std::string& error)> done) = 0;
  /// When the oldest piece of a lane ran that is done and has not been asked for. Once for each
  /// `done`.
  virtual WorkTimes TakeTimes(Lane lane) = 0;

  /// Blocks until all that is queued has run; throws what a device that failed says. For what the
  /// host reads itself: checkpoints, inspections.
  virtual void Synchronize() = 0;
};

/// Makes the queue of a rank; called on the rank's own thread.
using WorkQueueFactory = std::function<std::unique_ptr<WorkQueue>(int rank)>;

}  // namespace troupe
