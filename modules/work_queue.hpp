// Where a rank's work runs when that is not the thread that asks for it: a stream of a GPU.
// Programs queue their work by calling the library they compute with, and return before it has run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

/// When a piece of work ran, by the clock of trace/clock.hpp.
struct WorkTimes {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string error;  ///< in the device's words, when it has failed; else empty
};

/// One per rank; used on that rank's thread only.
class WorkQueue {
 public:
  WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  virtual ~WorkQueue() = default;

  /// The device whose memory its work reads and writes; Buffer::kHost where that is the host's.
  virtual int device() const = 0;
  /// First on the rank's thread: what it queues from now on comes here.
  virtual void BindThread() = 0;

  /// A piece of work begins here. `name` is what the device's own tools show:
  /// "vision.s0/microbatch 3/forward".
  virtual void Begin(const std::string& name) = 0;
  /// It ends here. `done` is called once, when all of it has run or the device has failed, on a
  /// thread that must not wait nor queue work: it sends a message.
  virtual void End(std::function<void(const WorkTimes&)> done) = 0;

  /// Rows that are in parts, laid together in the order of the queue; others as they are.
  virtual Buffer Assembled(const Buffer& rows) = 0;
  /// Uninitialised memory of the device, for what is queued from now on.
  virtual Buffer Allocate(Shape shape, DType dtype) = 0;
  /// Blocks until all that is queued has run; throws what a device that failed says. For what the
  /// host reads itself: checkpoints, inspections.
  virtual void Synchronize() = 0;
};

}  // namespace troupe
