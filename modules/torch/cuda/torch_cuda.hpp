// What a rank on a GPU asks of libtorch besides computing: on which stream it queues, and memory.
// Built for CUDA where the libtorch is (cmake/torch.cmake). Otherwise TorchHasCuda() is false, and
// all others throw std::logic_error that says so. This header shows nothing of libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Whether this build's libtorch knows CUDA devices; not whether there is one.
bool TorchHasCuda();

/// From now on what the calling thread computes with libtorch on `device` is queued on
/// `cuda_stream`, a cudaStream_t of that device that outlives all that is queued so. Also makes
/// `device` the thread's own. Throws std::runtime_error, in libtorch's words, where there is no
/// device.
void BindTorchToStream(int device, void* cuda_stream);

/// What libtorch's allocator has of a device, of this process.
struct DeviceMemoryUse {
  std::int64_t in_use_bytes = 0;    ///< held by tensors and whoever else asked
  std::int64_t reserved_bytes = 0;  ///< taken from the device, in use or kept for reuse
  std::int64_t peak_bytes = 0;      ///< most in use since the last ResetTorchPeak
};

/// All zeros before anything was allocated. Asks no device, so it may be called from any thread.
DeviceMemoryUse TorchMemoryUse(int device);
void ResetTorchPeak(int device);
/// Gives back to the devices what is reserved and not in use; waits for what is queued on them.
void EmptyTorchCache();

/// `bytes` of `device` from libtorch's allocator, so that what one gives back the other can use.
/// They may be used by what is queued on `cuda_stream` from now on; the last owner to go gives them
/// back behind what is queued there then. Null for 0 bytes. Throws std::runtime_error where the
/// device has no more.
std::shared_ptr<void> AllocateTorchMemory(int device, std::size_t bytes, void* cuda_stream);

/// Page-locked host memory that is kept for reuse, since asking the driver takes milliseconds. Who
/// lets go of it must know that no copy still uses it; copies of libtorch need no such care. Null
/// for 0 bytes. Throws std::runtime_error.
std::shared_ptr<void> AllocateTorchPinned(std::size_t bytes);

}  // namespace troupe
