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

/// Lanes run concurrently. Work on one lane runs in the order in which it was queued.
enum class Lane : std::uint8_t {
  kCompute,
  kCollectives,  ///< sums of gradients, concurrent with passes of the rank's other modules
};
inline constexpr std::size_t kNumLanes = 2;

/// When a piece of work ran, by the clock of trace/clock.hpp.
struct WorkTimes {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string error;  ///< of the device, if work that reports its times has failed
};

/// One per rank; used on that rank's thread only. Work that is queued later on the same lane may
/// use the results of Here and Allocate. Other lanes may use them only after the `done` of that
/// work.
class WorkQueue : public RowMemory {
 public:
  /// Called first on the rank's thread: work that it queues from now on goes to this queue, on
  /// kCompute unless a piece names another lane.
  virtual void BindThread() = 0;

  /// A piece of work begins here: everything that is queued up to its End, on `lane`. Tools of the
  /// device show it as `name`: "vision.s0/microbatch 3/forward".
  virtual void Begin(const std::string& name, Lane lane) = 0;
  /// The piece ends here. `done` is called once, with "" when all of it has run, or with the error
  /// of the device. Its thread must neither wait nor queue work: it sends a message. `done` is
  /// empty if queueing has failed halfway.
  virtual void End(std::function<void(const std::string& error)> done) = 0;
  /// Returns the times of the oldest finished piece of a lane that have not been taken yet. Called
  /// once for each `done`.
  virtual WorkTimes TakeTimes(Lane lane) = 0;

  /// Blocks until all queued work has run; throws the error of a device that failed. Needed before
  /// the host reads tensors itself: checkpoints, inspections.
  virtual void Synchronize() = 0;
};

/// Makes the queue of a rank; called on the rank's own thread.
using WorkQueueFactory = std::function<std::unique_ptr<WorkQueue>(int rank)>;

}  // namespace troupe
