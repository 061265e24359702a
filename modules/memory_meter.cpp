#include "modules/memory_meter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

#include "trace/clock.hpp"

namespace troupe {

ResidentMemory::ResidentMemory() : file_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {
  bytes_ = Look();
}

ResidentMemory::~ResidentMemory() {
  if (file_ >= 0) close(file_);
}

MemoryUse ResidentMemory::UseOf(int) {
  const std::int64_t now_ns = NowNs();
  std::int64_t look_at_ns = look_at_ns_.load(std::memory_order_relaxed);
  // The thread that sets the next time reads; the others return the last value.
  if (now_ns >= look_at_ns && look_at_ns_.compare_exchange_strong(look_at_ns, now_ns + kEveryNs)) {
    const std::int64_t bytes = Look();
    bytes_.store(bytes, std::memory_order_relaxed);
    peak_.store(std::max(peak_.load(std::memory_order_relaxed), bytes), std::memory_order_relaxed);
  }
  const std::int64_t bytes = bytes_.load(std::memory_order_relaxed);
  return {bytes, bytes, std::max(bytes, peak_.load(std::memory_order_relaxed))};
}

/// "pages-of-all pages-resident ...".
std::int64_t ResidentMemory::Look() const {
  std::array<char, 128> text{};
  const ssize_t size = file_ < 0 ? -1 : pread(file_, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  const char* const end = text.data() + size;
  std::int64_t all = 0;
  std::int64_t resident = 0;
  const char* const after = std::from_chars(text.data(), end, all).ptr;
  if (after == end || std::from_chars(after + 1, end, resident).ec != std::errc()) return 0;
  return std::max<std::int64_t>(resident * sysconf(_SC_PAGESIZE) - SideMemoryBytes(), 0);
}

}  // namespace troupe
