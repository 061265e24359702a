// The functions of libtorch that a rank on a GPU uses besides computing: streams and memory.
// Built for CUDA if libtorch was (cmake/torch.cmake). Otherwise TorchHasCuda() is false, and all
// other functions throw std::logic_error. This header includes nothing of libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Whether this build's libtorch knows CUDA devices; not whether there is one.
bool TorchHasCuda();

/// From now on libtorch queues the calling thread's work for `device` on `cuda_stream`, a
/// cudaStream_t of that device that outlives this work. Also makes `device` the thread's current
/// device. Throws std::runtime_error with libtorch's message if there is no
/// device.
void BindTorchToStream(int device, void* cuda_stream);

/// The memory of a device that libtorch's allocator holds in this process.
struct DeviceMemoryUse {
  std::int64_t in_use_bytes = 0;    ///< held by tensors and other users of the allocator
  std::int64_t reserved_bytes = 0;  ///< taken from the device, in use or kept for reuse
  std::int64_t peak_bytes = 0;      ///< most in use since the last ResetTorchPeak
};

/// All zeros before anything was allocated. Asks no device, so it may be called from any thread.
DeviceMemoryUse TorchMemoryUse(int device);
void ResetTorchPeak(int device);
/// Returns memory that is reserved and not in use to the devices; waits for the work queued on
/// them.
void EmptyTorchCache();

/// Allocates `bytes` of `device` from libtorch's allocator, which shares freed memory with tensors.
/// Work that is queued on `cuda_stream` from now on may use them. The last owner frees them after
/// the work that is queued there by then. Null for 0 bytes. Throws std::runtime_error if the device
/// has no more.
std::shared_ptr<void> AllocateTorchMemory(int device, std::size_t bytes, void* cuda_stream);

/// Page-locked host memory that is kept for reuse, since asking the driver takes milliseconds. Who
/// lets go of it must know that no copy still uses it; copies of libtorch need no such care. Null
/// for 0 bytes. Throws std::runtime_error.
std::shared_ptr<void> AllocateTorchPinned(std::size_t bytes);

}  // namespace troupe
