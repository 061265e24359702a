// Copies between a device's memory and memory beside it, which run beside what the device computes.
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

/// One per shard, used on that rank's thread only. What is queued runs in its order.
class CopyLane {
 public:
  CopyLane() = default;
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  /// What runs is waited for, what has not begun is dropped.
  virtual ~CopyLane() = default;

  /// Memory for a copy of `tensor`, of its size and type: on a GPU the host's, pinned.
  virtual at::Tensor Beside(const at::Tensor& tensor) = 0;
  /// Queues `copies`, all between contiguous tensors of one size, behind whatever the rank's thread
  /// has queued on its device so far. `release` lets go of what they read: it is called when they
  /// have run, or at once where the owner of that memory keeps it until then (a pool that knows
  /// streams). `done` is called after both, once, on a thread that must not wait.
  virtual void Queue(std::vector<LaneCopy> copies, std::function<void()> release,
                     StateMovedCallback done) = 0;
  /// Blocks until all that has been queued has run.
  virtual void Wait() = 0;
};

/// Between two places of the host's memory, on a thread of its own.
std::unique_ptr<CopyLane> MakeHostCopyLane();

/// Between a GPU and pinned memory of the host, on a stream of its own. Throws std::logic_error where
/// libtorch knows no GPUs.
std::unique_ptr<CopyLane> MakeDeviceCopyLane(int device);

}  // namespace troupe
