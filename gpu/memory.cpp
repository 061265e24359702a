#include "gpu/memory.hpp"

#include <cstdint>
#include <limits>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {
namespace {

std::size_t Attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = 0;
  TROUPE_CUDA(cudaMemPoolGetAttribute(pool, which, &value));
  return static_cast<std::size_t>(value);
}

}  // namespace

MemoryPool::MemoryPool(int device) : device_(device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  TROUPE_CUDA(cudaMemPoolCreate(&pool_, &properties));
  // Otherwise every synchronisation returns free memory to the device.
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  TROUPE_CUDA(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
}

MemoryPool::~MemoryPool() { TROUPE_CUDA_NO_THROW(cudaMemPoolDestroy(pool_)); }

std::shared_ptr<void> MemoryPool::Allocate(std::size_t bytes, const Stream& stream) {
  const DeviceGuard guard(device_);
  void* data = nullptr;
  if (bytes == 0) return nullptr;
  TROUPE_CUDA(cudaMallocFromPoolAsync(&data, bytes, pool_, stream.get()));
  return {data,
          [queue = stream.get()](void* mine) { TROUPE_CUDA_NO_THROW(cudaFreeAsync(mine, queue)); }};
}

MemoryUse MemoryPool::Use() const {
  return {Attribute(pool_, cudaMemPoolAttrUsedMemCurrent),
          Attribute(pool_, cudaMemPoolAttrReservedMemCurrent),
          Attribute(pool_, cudaMemPoolAttrUsedMemHigh)};
}

void MemoryPool::ResetPeak() {
  std::uint64_t zero = 0;  // the only value CUDA accepts
  TROUPE_CUDA(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &zero));
}

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
