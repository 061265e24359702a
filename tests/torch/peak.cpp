#include "tests/torch/peak.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <malloc.h>

#include "modules/memory_meter.hpp"

extern "C" void* __libc_memalign(std::size_t alignment, std::size_t bytes);

namespace troupe {
namespace {

std::atomic<bool> g_counts = false;
std::atomic<std::int64_t> g_begin = 0;
std::atomic<std::int64_t> g_peak = 0;

/// Small blocks do not move the peak.
constexpr std::size_t kCountedBytes = 4096;

std::int64_t Used() {
  const auto info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd) - SideMemoryBytes();
}

void Count() {
  const std::int64_t used = Used();
  std::int64_t peak = g_peak;
  while (used > peak && !g_peak.compare_exchange_weak(peak, used)) {
  }
}

}  // namespace

void BeginPeak() {
  g_begin = Used();
  g_peak = g_begin.load();
  g_counts = true;
}

double PeakBytes() {
  g_counts = false;
  return static_cast<double>(g_peak - g_begin);
}

}  // namespace troupe

/// In place of glibc's: libtorch gets the memory of its tensors here.
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = __libc_memalign(alignment, bytes);
  if (*memory == nullptr) return ENOMEM;
  if (troupe::g_counts && bytes >= troupe::kCountedBytes) troupe::Count();
  return 0;
}
