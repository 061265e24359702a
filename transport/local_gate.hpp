// Where the threads of a local group meet: a barrier that can be closed for good.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Every member alternates Enter and, when all agree that it is needed, any number of Meet.
/// Whether an Enter succeeds is one decision for all members, so that between it and the last Meet
/// everybody may touch everybody's memory: nobody leaves early.
class LocalGate {
 public:
  explicit LocalGate(int size) : size_(static_cast<std::uint32_t>(size)) {}

  /// Waits for all members. False on all of them, and from then on, if the gate closes before the
  /// last one arrives.
  bool Enter();
  /// Waits for all members, all of which have passed the last Enter. A closed gate does not end
  /// it, so what members do between the two must take bounded time.
  void Meet();
  /// Ends every wait of Enter. Thread-safe.
  void Close();

 private:
  /// Sleeps until the phase differs from `before` in its number, or is closed if `can_fail`.
  bool Wait(std::uint32_t before, bool can_fail) const;

  static constexpr std::uint32_t kClosed = 1;    // a bit of phase_
  static constexpr std::uint32_t kOnePhase = 2;  // the rest of it counts

  const std::uint32_t size_;
  // Apart, because waiting members read phase_ while late ones write arrived_.
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  alignas(64) std::atomic<std::uint32_t> phase_ = 0;
};

}  // namespace troupe
