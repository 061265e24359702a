// Copies between device and host memory that run concurrently with the device's passes.
#pragma once

#include <functional>
#include <memory>
#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

struct LaneCopy {
  at::Tensor to;
  at::Tensor from;
};

/// One per shard, used on that rank's thread only. Copies run in the order in which they are
/// queued.
class CopyLane {
 public:
  CopyLane() = default;
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  /// Waits for the copy that runs; drops copies that have not begun.
  virtual ~CopyLane() = default;

  /// Memory for a copy of `tensor`, of its size and type: on a GPU the host's, pinned.
  virtual at::Tensor Beside(const at::Tensor& tensor) = 0;
  /// Queues `copies`, all between contiguous tensors of one size, after the work that the rank's
  /// thread has queued on its device so far. `release` releases the memory that they read: it is
  /// called when they have run, or at once if a pool keeps that memory until then (one that knows
  /// streams). `done` is called after both, once, on a thread that must not wait.
  virtual void Queue(std::vector<LaneCopy> copies, std::function<void()> release,
                     StateMovedCallback done) = 0;
  /// Blocks until all that has been queued has run.
  virtual void Wait() = 0;
};

/// Copies within host memory, on a separate thread.
std::unique_ptr<CopyLane> MakeHostCopyLane();

/// Copies between a GPU and pinned host memory, on a separate stream. Throws std::logic_error if
/// libtorch was built without CUDA.
std::unique_ptr<CopyLane> MakeDeviceCopyLane(int device);

}  // namespace troupe
