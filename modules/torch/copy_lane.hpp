// Copies between device and host memory that run concurrently with the device's passes.
#pragma once

#include <cstdint>
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

/// Releases the memory of the tensor's storage. All that share it have none until TakeMemory.
void LetGo(const at::Tensor& tensor);
/// Gives the storage memory again, with any contents.
void TakeMemory(const at::Tensor& tensor);

/// One per shard, used on that rank's thread only. Copies run in the order in which they are
/// queued.
class CopyLane {
 public:
  CopyLane() = default;
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  /// Waits for the copy that runs; drops copies that have not begun.
  virtual ~CopyLane() = default;

  /// Copies that were queued together, counted from 1.
  using Job = std::int64_t;

  /// Memory [bytes] for copies: for those of a GPU the host's, pinned.
  virtual at::Tensor HostBytes(std::int64_t bytes) = 0;
  /// Queues `copies`, all between contiguous tensors of as many bytes, after the work that the rank's
  /// thread has queued on its device so far. `release` releases the memory that they read: it is
  /// called when they have run, or at once if a pool keeps that memory until then (one that knows
  /// streams). `done` is called after both, once, on a thread that must not wait.
  virtual Job Queue(std::vector<LaneCopy> copies, std::function<void()> release,
                    StateMovedCallback done) = 0;
  /// Blocks until `job`, and those before it, have run. Returns false if they were known to have.
  virtual bool Wait(Job job) = 0;
  /// Work that the rank's thread queues from now on runs after `job`. Returns whether the thread had
  /// to wait for that.
  virtual bool Join(Job job) { return Wait(job); }
};

/// Copies within host memory, on a separate thread.
std::unique_ptr<CopyLane> MakeHostCopyLane();

/// Copies between a GPU and pinned host memory, on a separate stream. Throws std::logic_error if
/// libtorch was built without CUDA.
std::unique_ptr<CopyLane> MakeDeviceCopyLane(int device);

}  // namespace troupe
