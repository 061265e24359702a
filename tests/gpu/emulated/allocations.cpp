// The registry of what is allocated.
#include "tests/gpu/emulated/allocations.hpp"

#include <cstring>
#include <new>

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

/// The allocation that `data` points into, with memory_mutex held; end() if there is none.
auto Find(const World& world, const void* data) {
  const auto* const place = static_cast<const std::byte*>(data);
  auto found = world.memory.upper_bound(place);
  if (found == world.memory.begin()) return world.memory.end();
  --found;
  return place < found->first + found->second.num_bytes ? found : world.memory.end();
}

bool HasFailed(const World& world, int device) {
  return device >= 0 && world.devices[static_cast<std::size_t>(device)]->error != cudaSuccess;
}

}  // namespace

std::byte* Make(Allocation allocation) {
  World& world = TheWorld();
  auto* const data = static_cast<std::byte*>(::operator new(allocation.num_bytes, kAlignment));
  std::memset(data, kFresh, allocation.num_bytes);
  const std::lock_guard lock(world.memory_mutex);
  world.memory.emplace(data, std::move(allocation));
  return data;
}

void Bury(std::byte* data, int device) {
  World& world = TheWorld();
  std::unique_lock in_use(world.memory_in_use, std::defer_lock);
  if (HasFailed(world, device)) in_use.lock();
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
  if (allocation.kind == Allocation::Kind::kPinned) return;
  world.devices[static_cast<std::size_t>(allocation.device)]->used -= allocation.num_bytes;
  if (allocation.pool == nullptr) return;
  const std::lock_guard pool_lock(allocation.pool->mutex);
  allocation.pool->used -= allocation.num_bytes;
}

bool GiveBack(const void* data, Allocation::Kind kind, const char* call) {
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
    } else if (found->second.kind == Allocation::Kind::kDevice && found->second.device != device) {
      wrong = "memory of device " + std::to_string(found->second.device);
    }
  }
  if (wrong.empty()) return true;
  Fault(std::string(what) + " on device " + std::to_string(device) + " uses " + wrong);
  return false;
}

}  // namespace troupe::emulated
