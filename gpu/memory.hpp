// Device memory allocated in stream order, and pinned host memory.
#pragma once

#include <cstddef>
#include <memory>

#include <cuda_runtime_api.h>

namespace troupe::gpu {

class Stream;

struct MemoryUse {
  std::size_t in_use_bytes = 0;    ///< allocated now
  std::size_t reserved_bytes = 0;  ///< reserved by the pool
  std::size_t peak_bytes = 0;      ///< maximum in use since the last ResetPeak
};

/// A pool of one device's memory. Allocations and releases are ordered by a stream, so neither
/// waits for the device. Thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(int device);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  int device() const { return device_; }
  /// Allocates memory for work queued on `stream` from now on. The last owner's release takes
  /// effect after the work queued by then. `stream` must outlive the memory. Throws CudaError if
  /// the device is out of memory.
  std::shared_ptr<void> Allocate(std::size_t bytes, const Stream& stream);
  MemoryUse Use() const;
  void ResetPeak();

 private:
  int device_ = 0;
  cudaMemPool_t pool_ = nullptr;
};

/// Device memory outside any pool, for data that lives as long as the job: its release waits for
/// the device. Throws CudaError.
std::shared_ptr<void> AllocateOnDevice(int device, std::size_t bytes);

/// Page-locked host memory. Throws CudaError.
std::shared_ptr<void> AllocatePinned(std::size_t bytes);

}  // namespace troupe::gpu
