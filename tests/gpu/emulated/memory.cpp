// The calls that allocate memory, release it and say what a pointer is.
#include <algorithm>
#include <cstdint>

#include "tests/gpu/emulated/allocations.hpp"

using namespace troupe::emulated;

using Kind = Allocation::Kind;

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (const cudaError_t code = Enter(properties->location.id, "cudaMemPoolCreate")) return code;
  const auto made = std::make_shared<CUmemPoolHandle_st>();
  made->device = properties->location.id;
  *pool = made.get();
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  world.pools.emplace(*pool, made);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  if (world.pools.erase(pool) == 0) {
    Fault("cudaMemPoolDestroy: no pool, or one that is destroyed");
    return Note(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  const std::lock_guard lock(pool->mutex);
  const auto number = *static_cast<const std::uint64_t*>(value);
  if (which == cudaMemPoolAttrReleaseThreshold) {
    pool->threshold = number;
  } else if (which == cudaMemPoolAttrUsedMemHigh && number == 0) {
    pool->peak = pool->used;
  } else {
    return Note(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  const std::lock_guard lock(pool->mutex);
  auto& number = *static_cast<std::uint64_t*>(value);
  if (which == cudaMemPoolAttrUsedMemCurrent) {
    number = pool->used;
  } else if (which == cudaMemPoolAttrUsedMemHigh) {
    number = pool->peak;
  } else if (which == cudaMemPoolAttrReservedMemCurrent) {
    number = pool->reserved;
  } else {
    return Note(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t num_bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMallocFromPoolAsync")) return code;
  World& world = TheWorld();
  std::shared_ptr<CUmemPoolHandle_st> owner;
  {
    const std::shared_lock lock(world.mutex);
    owner = world.pools.at(pool);
  }
  if (!Reserve(owner->device, num_bytes)) return Note(cudaErrorMemoryAllocation);
  {
    const std::lock_guard lock(owner->mutex);
    owner->used += num_bytes;
    owner->peak = std::max(owner->peak, owner->used);
    owner->reserved = std::max(owner->reserved, owner->used);
  }
  std::byte* const made = Make({Kind::kDevice, owner->device, num_bytes, false, false, owner});
  stream->Queue({Work::When::kAlways, [made] {
                   const std::lock_guard lock(TheWorld().memory_mutex);
                   TheWorld().memory.at(made).alive = true;
                 }});
  *data = made;
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaFreeAsync")) {
    if (code == cudaErrorNotPermitted) return code;
  }
  {
    World& world = TheWorld();
    const std::shared_lock lock(world.mutex);
    if (!world.streams.contains(stream)) {
      Fault("cudaFreeAsync: memory outlives its stream");
      return Note(cudaErrorInvalidResourceHandle);
    }
  }
  if (!GiveBack(data, Kind::kDevice, "cudaFreeAsync")) return Note(cudaErrorInvalidValue);
  stream->Queue({Work::When::kAlways,
                 [data, device = stream->device] { Bury(static_cast<std::byte*>(data), device); }});
  return Note(TheWorld().devices[static_cast<std::size_t>(stream->device)]->error);
}

cudaError_t cudaMalloc(void** data, std::size_t num_bytes) {
  const int device = CurrentDevice();
  if (const cudaError_t code = Enter(device, "cudaMalloc")) return code;
  if (!Reserve(device, num_bytes)) return Note(cudaErrorMemoryAllocation);
  *data = Make({Kind::kDevice, device, num_bytes, true, false, nullptr});
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  if (!GiveBack(data, Kind::kDevice, "cudaFree")) return Note(cudaErrorInvalidValue);
  const int device = FindMemory(data)->device;
  std::vector<cudaStream_t> streams;
  {
    World& world = TheWorld();
    const std::shared_lock lock(world.mutex);
    for (const auto& stream : world.all_streams)
      if (stream->device == device) streams.push_back(stream.get());
  }
  for (const cudaStream_t stream : streams) {
    std::unique_lock lock(stream->mutex);
    stream->changed.wait(lock, [&] { return stream->num_run == stream->num_queued; });
  }
  Bury(static_cast<std::byte*>(data), device);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t num_bytes, unsigned) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaHostAlloc")) return code;
  *data = Make({Kind::kPinned, kNoDevice, num_bytes, true, false, nullptr});
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  if (!GiveBack(data, Kind::kPinned, "cudaFreeHost")) return Note(cudaErrorInvalidValue);
  Bury(static_cast<std::byte*>(data), kNoDevice);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaPointerGetAttributes")) return code;
  *attributes = {};
  const auto found = FindMemory(data);
  attributes->device = !found || found->device < 0 ? -2 : found->device;
  attributes->type = !found                         ? cudaMemoryTypeUnregistered
                     : found->kind == Kind::kPinned ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaMemGetInfo")) return code;
  const World& world = TheWorld();
  *total = world.settings.memory_bytes;
  *free = *total - world.devices[static_cast<std::size_t>(CurrentDevice())]->used;
  return cudaSuccess;
}
