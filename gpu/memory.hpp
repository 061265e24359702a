// Memory of a device, in the order of a stream, and host memory that copies can overlap with.
#pragma once

#include <cstddef>
#include <memory>

#include <cuda_runtime_api.h>

namespace troupe::gpu {

class Stream;

struct MemoryUse {
  std::size_t in_use_bytes = 0;    ///< what is allocated now
  std::size_t reserved_bytes = 0;  ///< what the pool holds of the device
  std::size_t peak_bytes = 0;      ///< most in use since the last ResetPeak
};

/// Memory of one device that is kept for reuse. Allocations and releases take their turn in a
/// stream, so neither waits for the device. Thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(int device);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  int device() const { return device_; }
  /// `bytes` that may be used by what is queued on `stream` from now on; the last owner to go
  /// releases them behind what is queued then. `stream` must outlive them. Throws CudaError when
  /// the device has no more.
  std::shared_ptr<void> Allocate(std::size_t bytes, const Stream& stream);
  MemoryUse Use() const;
  void ResetPeak();

 private:
  int device_ = 0;
  cudaMemPool_t pool_ = nullptr;
};

/// Memory of `device` beside any pool, for what lives as long as the job: its release waits for the
/// device. Throws CudaError.
std::shared_ptr<void> AllocateOnDevice(int device, std::size_t bytes);

/// Page-locked host memory. Throws CudaError.
std::shared_ptr<void> AllocatePinned(std::size_t bytes);

}  // namespace troupe::gpu
