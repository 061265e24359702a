// How much memory computing takes. Devices write it down with every piece of work.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

struct MemoryUse {
  std::int64_t in_use_bytes = 0;
  std::int64_t reserved_bytes = 0;  ///< in use, or kept by the process for reuse
  std::int64_t peak_bytes = 0;      ///< most in use so far
};

/// A backend's answer; one per process.
class MemoryMeter {
 public:
  MemoryMeter() = default;
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;
  virtual ~MemoryMeter() = default;
  /// The use of the memory that `rank` computes in, including the ranks that share it; zeros if
  /// unknown. Thread-safe. Devices call it after every piece of work, so a microsecond is much.
  virtual MemoryUse UseOf(int rank) = 0;
};

/// For a backend that computes in the process's own memory: its resident bytes, as the kernel
/// counts them, without offloaded state (SideMemoryBytes), the same for every rank. They
/// are read at most every kEveryNs, so that short passes do not pay for it; in between, the last
/// value is returned.
class ResidentMemory : public MemoryMeter {
 public:
  /// Reading takes 0.9 us where it was measured: 0.4% of that time.
  static constexpr std::int64_t kEveryNs = 250'000;

  /// Where /proc cannot be read the answer is 0.
  ResidentMemory();
  ~ResidentMemory() override;
  MemoryUse UseOf(int rank) override;

 private:
  std::int64_t Look() const;

  const int file_;  ///< /proc/self/statm, kept open: opening it takes longer than reading it
  std::atomic<std::int64_t> bytes_ = 0;
  std::atomic<std::int64_t> peak_ = 0;  ///< of those that were looked up
  std::atomic<std::int64_t> look_at_ns_ = 0;
};

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
