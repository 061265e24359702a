#include "gpu/memory.hpp"

#include "gpu/check.hpp"
#include "gpu/device.hpp"

namespace troupe::gpu {

std::shared_ptr<void> AllocateOnDevice(int device, std::size_t bytes) {
  const DeviceGuard guard(device);
  void* data = nullptr;
  if (bytes == 0) return nullptr;
  TROUPE_CUDA(cudaMalloc(&data, bytes));
  return {data, [](void* mine) { TROUPE_CUDA_NO_THROW(cudaFree(mine)); }};
}

std::shared_ptr<void> AllocatePinned(std::size_t bytes) {
  void* data = nullptr;
  if (bytes == 0) return nullptr;
  TROUPE_CUDA(cudaHostAlloc(&data, bytes, cudaHostAllocDefault));
  return {data, [](void* mine) { TROUPE_CUDA_NO_THROW(cudaFreeHost(mine)); }};
}

}  // namespace troupe::gpu
