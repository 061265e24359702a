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
  /// Of the memory that `rank` computes in, whoever shares it; zeros: not known. Thread-safe.
  /// Devices ask after every piece of work, so a microsecond is much.
  virtual MemoryUse UseOf(int rank) = 0;
};

/// Of a backend that computes in the process's own memory: its resident bytes, as the kernel counts
/// them, without those that stand for memory beside a device (modules/side_memory.hpp), whichever
/// the rank. They are looked up at most every kEveryNs, so passes that take no time do not pay for
/// it; between two looks the answer is that of the last one.
class ResidentMemory : public MemoryMeter {
 public:
  /// A look takes 0.9 us where it was measured: 0.4% of that time.
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

}  // namespace troupe
