// Device memory that tests allocate and release in the order of a stream, like the allocator of
// libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include <cuda_runtime_api.h>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {

/// A pool of one device's memory. Neither allocations nor releases wait for the device.
class MemoryPool {
 public:
  explicit MemoryPool(int device) : device_(device) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    TROUPE_CUDA(cudaMemPoolCreate(&pool_, &properties));
    // Otherwise every synchronisation returns free memory to the device.
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    TROUPE_CUDA(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool() { TROUPE_CUDA_NO_THROW(cudaMemPoolDestroy(pool_)); }

  /// Allocates memory for work queued on `stream` from now on. The last owner's release takes
  /// effect after the work queued by then. `stream` must outlive the memory. Throws CudaError if
  /// the device is out of memory.
  std::shared_ptr<void> Allocate(std::size_t bytes, const Stream& stream) {
    const DeviceGuard guard(device_);
    void* data = nullptr;
    if (bytes == 0) return nullptr;
    TROUPE_CUDA(cudaMallocFromPoolAsync(&data, bytes, pool_, stream.get()));
    return {data, [queue = stream.get()](void* mine) {
              TROUPE_CUDA_NO_THROW(cudaFreeAsync(mine, queue));
            }};
  }

 private:
  int device_ = 0;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace troupe::gpu
