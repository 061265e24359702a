// Loaded into `troupe` before the C library: counts the bytes of large blocks on the heap. The file
// TROUPE_HEAP_PEAK.PID holds the most so far of each process, as 8 bytes.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <malloc.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void __libc_free(void* block);
}

namespace {

/// Small blocks do not move the peak, and counting them takes time.
constexpr std::size_t kCountedBytes = 16384;

using Bytes = std::atomic<std::int64_t>;

Bytes used{0};
Bytes peak_before{0};  ///< the peak until there is a file
Bytes* peak = &peak_before;

__attribute__((constructor)) void OpenFile() {
  const char* const path = std::getenv("TROUPE_HEAP_PEAK");
  if (path == nullptr) return;
  const std::string name = std::string(path) + "." + std::to_string(getpid());
  const int file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Bytes)) != 0) return;
  void* const memory = mmap(nullptr, sizeof(Bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory != MAP_FAILED) peak = new (memory) Bytes(peak_before.load());
}

std::int64_t CountedOf(void* block) {
  const std::size_t bytes = block == nullptr ? 0 : malloc_usable_size(block);
  return bytes < kCountedBytes ? 0 : static_cast<std::int64_t>(bytes);
}

void* Added(void* block) {
  const std::int64_t bytes = CountedOf(block);
  if (bytes == 0) return block;
  const std::int64_t now = used += bytes;
  std::int64_t most = *peak;
  while (now > most && !peak->compare_exchange_weak(most, now)) {
  }
  return block;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) { return Added(__libc_malloc(bytes)); }

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return Added(__libc_memalign(alignment, bytes));
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = Added(__libc_memalign(alignment, bytes));
  return *memory == nullptr ? ENOMEM : 0;
}

void* realloc(void* block, std::size_t bytes) {
  const std::int64_t before = CountedOf(block);
  void* const moved = __libc_realloc(block, bytes);
  if (moved == nullptr && bytes > 0) return nullptr;  // the block is as it was
  used -= before;
  return Added(moved);
}

void free(void* block) {
  used -= CountedOf(block);
  __libc_free(block);
}
}
