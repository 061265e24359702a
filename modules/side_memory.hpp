// Host memory that holds state which has left its device.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Bytes of this process that hold state offloaded from a device. If the host computes, it is its
/// own device, so the kernel counts these bytes with the rest; MemoryMeter subtracts them.
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
