// Memory of devices and pinned host memory.
#pragma once

#include <cstddef>
#include <memory>

namespace troupe::gpu {

/// Device memory for data that lives as long as the job: its release waits for the device. Throws
/// CudaError.
std::shared_ptr<void> AllocateOnDevice(int device, std::size_t bytes);

/// Page-locked host memory. Throws CudaError.
std::shared_ptr<void> AllocatePinned(std::size_t bytes);

}  // namespace troupe::gpu
