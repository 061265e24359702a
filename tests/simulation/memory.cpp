#include "tests/simulation/memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

extern "C" {
// The allocator of the C library.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace troupe::testing {
namespace {

constexpr std::uintptr_t kBegin = 0x2000'0000'0000;
constexpr std::uintptr_t kStacks = kBegin + (std::uintptr_t{16} << 30);
constexpr std::uintptr_t kEnd = kStacks + (std::uintptr_t{16} << 30);
constexpr std::size_t kAlignment = 16;

/// Directly before the memory that a block is used for.
struct Header {
  std::uint32_t size_class;  ///< the block has two to this power bytes
  std::uint32_t offset;      ///< of the memory in the block
  std::uint64_t size;        ///< that was asked for
};
static_assert(sizeof(Header) == kAlignment);

struct FreeBlock {
  FreeBlock* next;
};

std::atomic<bool> is_fresh = false;
thread_local bool has_left = false;
std::uintptr_t next_block = kBegin;
std::uintptr_t next_stack = kStacks;
std::array<FreeBlock*, 40> free_blocks{};
std::vector<void*> free_stacks;

bool IsOurs(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return address >= kBegin && address < kEnd;
}

Header& HeaderOf(void* memory) { return static_cast<Header*>(memory)[-1]; }

/// `is_zero`: set if nothing has used the memory before.
void* Allocate(std::size_t size, std::size_t alignment, bool* is_zero = nullptr) {
  const std::size_t needed = size + sizeof(Header) + (alignment > kAlignment ? alignment : 0);
  const auto size_class =
      static_cast<std::uint32_t>(std::bit_width(std::max<std::size_t>(needed, 32) - 1));
  auto block = reinterpret_cast<std::uintptr_t>(free_blocks.at(size_class));
  if (is_zero != nullptr) *is_zero = block == 0;
  if (block != 0) {
    free_blocks[size_class] = free_blocks[size_class]->next;
  } else {
    block = next_block;
    next_block += std::uintptr_t{1} << size_class;
  }
  if (next_block > kStacks) std::abort();
  const std::uintptr_t memory = (block + sizeof(Header) + alignment - 1) / alignment * alignment;
  auto* const result = reinterpret_cast<void*>(memory);
  HeaderOf(result) = {size_class, static_cast<std::uint32_t>(memory - block), size};
  return result;
}

void Free(void* memory) {
  const Header header = HeaderOf(memory);
  auto* const block = reinterpret_cast<FreeBlock*>(static_cast<char*>(memory) - header.offset);
  block->next = free_blocks[header.size_class];
  free_blocks[header.size_class] = block;
}

void Map(std::uintptr_t begin, std::uintptr_t end) {
  auto* const place = reinterpret_cast<void*>(begin);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (mmap(place, end - begin, PROT_READ | PROT_WRITE, flags, -1, 0) != place) std::abort();
}

}  // namespace

void UseFreshMemory() {
  Map(kBegin, kStacks);
  Map(kStacks, kEnd);
  is_fresh = true;
}

void LeaveMemory() { has_left = true; }

void* TakeStack() {
  if (!free_stacks.empty()) {
    void* const stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
  }
  const std::uintptr_t stack = next_stack;
  next_stack += kStackBytes;
  if (next_stack > kEnd) std::abort();
  return reinterpret_cast<void*>(stack);
}

void GiveStack(void* stack) { free_stacks.push_back(stack); }

}  // namespace troupe::testing

using namespace troupe::testing;  // NOLINT: the functions below are those of the C library

extern "C" {

void* malloc(size_t size) { return is_fresh ? Allocate(size, kAlignment) : __libc_malloc(size); }

void free(void* memory) {
  if (memory == nullptr) return;
  if (!IsOurs(memory)) return __libc_free(memory);
  if (!has_left) Free(memory);
}

void* calloc(size_t count, size_t size) {
  if (!is_fresh) return __libc_calloc(count, size);
  bool is_zero = false;
  void* const memory = Allocate(count * size, kAlignment, &is_zero);
  return is_zero ? memory : std::memset(memory, 0, count * size);
}

void* realloc(void* memory, size_t size) {
  if (!is_fresh && !IsOurs(memory)) return __libc_realloc(memory, size);
  if (memory == nullptr) return malloc(size);
  if (!IsOurs(memory)) return __libc_realloc(memory, size);
  const std::size_t before = HeaderOf(memory).size;
  if (size <= before) return memory;
  void* const larger = Allocate(size, kAlignment);
  std::memcpy(larger, memory, before);
  Free(memory);
  return larger;
}

void* memalign(size_t alignment, size_t size) {
  return is_fresh ? Allocate(size, std::max(alignment, kAlignment))
                  : __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
