// The last records of one device: written by its thread, read by anybody at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/pass_record.hpp"

namespace troupe {

/// Records [first, first + records.size()) of all that were ever pushed, oldest first.
struct RingSnapshot {
  std::uint64_t first = 0;
  std::vector<PassRecord> records;
};

/// A bounded ring that keeps the newest records and counts those it had to drop. Push never waits
/// and never allocates; a reader that is overtaken gets fewer records, never a torn one.
class Ring {
 public:
  /// Throws std::invalid_argument for a capacity of 0.
  explicit Ring(std::size_t capacity);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// On the producer's thread only.
  void Push(const PassRecord& record);

  /// On any thread. The records from number `from` on that the ring still holds; a reader that
  /// drains passes first + records.size() of its last snapshot, and has missed `first - from`.
  RingSnapshot Snapshot(std::uint64_t from = 0) const;

  std::size_t capacity() const { return slots_.size(); }
  /// Records pushed so far.
  std::uint64_t num_pushed() const { return finished_.load(std::memory_order_acquire); }
  /// Records that newer ones have overwritten.
  std::uint64_t num_dropped() const;

 private:
  static constexpr std::size_t kWords = sizeof(PassRecord) / sizeof(std::uint64_t);
  using Slot = std::array<std::atomic<std::uint64_t>, kWords>;

  std::vector<Slot> slots_;
  // Record n is in slot n % capacity once finished_ > n, until started_ > n + capacity.
  std::atomic<std::uint64_t> started_ = 0;
  std::atomic<std::uint64_t> finished_ = 0;
};

}  // namespace troupe
