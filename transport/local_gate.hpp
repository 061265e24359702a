// A barrier for the threads of a local group that can be closed for good.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Every member alternates Enter and, if all agree that it is needed, any number of Meet. Whether
/// an Enter succeeds is one decision for all members. So between Enter and the last Meet every
/// member may use every other member's memory: no member leaves early.
class LocalGate {
 public:
  explicit LocalGate(int size) : size_(static_cast<std::uint32_t>(size)) {}

  /// Waits for all members. False on all of them, now and later, if the gate closes before the last
  /// one arrives.
  bool Enter();
  /// Waits for all members, all of which have passed the last Enter. Closing does not end this
  /// wait, so members must take bounded time between the two.
  void Meet();
  /// Ends every wait of Enter. Thread-safe.
  void Close();

 private:
  /// Sleeps until the phase number differs from `before`, or, if `can_fail`, until the gate closes.
  bool Wait(std::uint32_t before, bool can_fail) const;

  static constexpr std::uint32_t kClosed = 1;    // a bit of phase_
  static constexpr std::uint32_t kOnePhase = 2;  // the other bits count phases

  const std::uint32_t size_;
  // On separate lines: waiting members read phase_ while late ones write arrived_.
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  alignas(64) std::atomic<std::uint32_t> phase_ = 0;
};

}  // namespace troupe
