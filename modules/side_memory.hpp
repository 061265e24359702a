// Memory beside a device's: the host's, where state lies that has left its device.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Bytes of this process that only stand for memory beside a device. Where the host computes it is
/// its own device, so the kernel counts them with the rest; MemoryMeter takes them off again.
inline std::atomic<std::int64_t>& SideMemoryBytes() {
  static std::atomic<std::int64_t> bytes = 0;
  return bytes;
}

/// Counts as long as it lives.
class CountedSideMemory {
 public:
  explicit CountedSideMemory(std::int64_t bytes) : bytes_(bytes) { SideMemoryBytes() += bytes_; }
  CountedSideMemory(const CountedSideMemory&) = delete;
  CountedSideMemory& operator=(const CountedSideMemory&) = delete;
  ~CountedSideMemory() { SideMemoryBytes() -= bytes_; }

 private:
  std::int64_t bytes_;
};

}  // namespace troupe
