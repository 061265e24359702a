// Memory of the emulated runtime.
#include <algorithm>
#include <cstring>
#include <new>

#include "tests/gpu/emulated/world.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address))
#endif

namespace troupe::emulated {
namespace {

constexpr std::align_val_t kAlignment{256};
constexpr int kFresh = 0xcd;
constexpr int kReleased = 0xdd;
/// What is released stays known as such until so much has been released after it.
constexpr std::size_t kGraveBytes = std::size_t{64} << 20;

using Kind = Allocation::Kind;

std::byte* Make(Allocation allocation) {
  World& world = TheWorld();
  auto* const data = static_cast<std::byte*>(::operator new(allocation.num_bytes, kAlignment));
  std::memset(data, kFresh, allocation.num_bytes);
  const std::lock_guard lock(world.memory_mutex);
  world.memory.emplace(data, std::move(allocation));
  return data;
}

/// The allocation that `data` points into, with memory_mutex held; end() if there is none.
auto Find(const World& world, const void* data) {
  const auto* const place = static_cast<const std::byte*>(data);
  auto found = world.memory.upper_bound(place);
  if (found == world.memory.begin()) return world.memory.end();
  --found;
  return place < found->first + found->second.num_bytes ? found : world.memory.end();
}

/// Gives an allocation up, in its turn.
void Bury(std::byte* data) {
  World& world = TheWorld();
  const std::lock_guard lock(world.memory_mutex);
  const auto found = world.memory.find(data);
  const Allocation allocation = found->second;
  world.memory.erase(found);
  std::memset(data, kReleased, allocation.num_bytes);
  ASAN_POISON_MEMORY_REGION(data, allocation.num_bytes);
  world.grave.emplace_back(data, allocation.num_bytes);
  world.grave_bytes += allocation.num_bytes;
  while (world.grave_bytes > kGraveBytes) {
    const auto [oldest, num_bytes] = world.grave.front();
    world.grave.pop_front();
    world.grave_bytes -= num_bytes;
    ASAN_UNPOISON_MEMORY_REGION(oldest, num_bytes);
    ::operator delete(oldest, kAlignment);
  }
  if (allocation.kind == Kind::kPinned) return;
  world.devices[static_cast<std::size_t>(allocation.device)]->used -= allocation.num_bytes;
  if (allocation.pool == nullptr) return;
  const std::lock_guard pool_lock(allocation.pool->mutex);
  allocation.pool->used -= allocation.num_bytes;
}

/// Marks as given back by its owner; false, and a fault, if that cannot be.
bool GiveBack(const void* data, Kind kind, const char* call) {
  World& world = TheWorld();
  const std::lock_guard lock(world.memory_mutex);
  const auto found = world.memory.find(static_cast<const std::byte*>(data));
  if (found == world.memory.end() || found->second.freed || found->second.kind != kind) {
    Fault(std::string(call) + ": not an allocation, or one that is given back");
    return false;
  }
  found->second.freed = true;
  return true;
}

bool Reserve(int device, std::size_t num_bytes) {
  const World& world = TheWorld();
  std::atomic<std::size_t>& used = world.devices[static_cast<std::size_t>(device)]->used;
  if (used.fetch_add(num_bytes) + num_bytes <= world.settings.memory_bytes) return true;
  used -= num_bytes;
  return false;
}

bool OnHost(const void* data) {
  const auto found = FindMemory(data);
  return !found || found->kind == Kind::kPinned;
}

}  // namespace

std::optional<Allocation> FindMemory(const void* data) {
  const World& world = TheWorld();
  const std::shared_lock lock(world.memory_mutex);
  const auto found = Find(world, data);
  if (found == world.memory.end()) return std::nullopt;
  return found->second;
}

bool MayUse(const void* data, std::size_t num_bytes, int device, const char* what) {
  if (num_bytes == 0) return true;
  const World& world = TheWorld();
  std::string wrong;
  {
    const std::shared_lock lock(world.memory_mutex);
    const auto found = Find(world, data);
    if (found == world.memory.end()) {
      wrong = "memory that is no device's, or is released";
    } else if (static_cast<const std::byte*>(data) + num_bytes >
               found->first + found->second.num_bytes) {
      wrong = "memory beyond the end of an allocation";
    } else if (!found->second.alive) {
      wrong = "memory before it is allocated in stream order";
    } else if (found->second.kind == Kind::kDevice && found->second.device != device) {
      wrong = "memory of device " + std::to_string(found->second.device);
    }
  }
  if (wrong.empty()) return true;
  Fault(std::string(what) + " on device " + std::to_string(device) + " uses " + wrong);
  return false;
}

}  // namespace troupe::emulated

using namespace troupe::emulated;

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

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
  const std::lock_guard lock(pool->mutex);
  pool->reserved = std::min(pool->reserved, std::max<std::uint64_t>(pool->used, keep));
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
  stream->Queue({Work::When::kAlways, [data] { Bury(static_cast<std::byte*>(data)); }});
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
  Bury(static_cast<std::byte*>(data));
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t num_bytes, unsigned) {
  if (const cudaError_t code = Enter(CurrentDevice(), "cudaHostAlloc")) return code;
  *data = Make({Kind::kPinned, -1, num_bytes, true, false, nullptr});
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  if (!GiveBack(data, Kind::kPinned, "cudaFreeHost")) return Note(cudaErrorInvalidValue);
  Bury(static_cast<std::byte*>(data));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t num_bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMemcpyAsync")) return code;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  if (kind != cudaMemcpyDefault && (OnHost(to) != to_host || OnHost(from) != from_host)) {
    Fault("cudaMemcpyAsync: the kind of copy is another than the pointers say");
    return Note(cudaErrorInvalidValue);
  }
  const bool checks_to = FindMemory(to).has_value();
  const bool checks_from = FindMemory(from).has_value();
  const int device = stream->device;
  const std::size_t place =
      stream->Queue({Work::When::kWhole, [=] {
                       if (checks_to && !MayUse(to, num_bytes, device, "a copy")) return;
                       if (checks_from && !MayUse(from, num_bytes, device, "a copy")) return;
                       std::memcpy(to, from, num_bytes);
                     }});
  // Memory that is not pinned is used while the call lasts.
  if (!checks_to || !checks_from) stream->Reach(place);
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t num_bytes, cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMemcpyPeerAsync")) return code;
  stream->Queue({Work::When::kWhole, [=] {
                   if (!MayUse(to, num_bytes, to_device, "a peer copy")) return;
                   if (!MayUse(from, num_bytes, from_device, "a peer copy")) return;
                   std::memcpy(to, from, num_bytes);
                 }});
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t num_bytes, cudaStream_t stream) {
  if (const cudaError_t code = Enter(stream->device, "cudaMemsetAsync")) return code;
  stream->Queue({Work::When::kWhole, [=, device = stream->device] {
                   if (MayUse(data, num_bytes, device, "a memset"))
                     std::memset(data, value, num_bytes);
                 }});
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
