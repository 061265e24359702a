// The frames of a heartbeat connection, and a clock estimate from their times. Layout:
// docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/watch.hpp"

namespace troupe {

struct Heartbeat {
  static constexpr std::size_t kBytes = 48;

  enum class Kind : std::uint8_t {
    kBeat = 1,
    kGoodbye = 2,     ///< the sender leaves on purpose; nothing follows
    kGaveUp = 3,      ///< the sender considers the receiver lost; nothing follows
    kGaveUpPath = 4,  ///< the same, because larger packets than heartbeats do not get through
  };

  Kind kind = Kind::kBeat;
  std::uint64_t sequence = 0;
  Vitals vitals;
  std::int64_t sent_ns = 0;  ///< the sender's steady clock
  std::int64_t echo_ns = 0;  ///< sent_ns of the last heartbeat received, 0 = none yet
  std::int64_t held_ns = 0;  ///< time between receiving that one and sending this one
};

std::vector<std::byte> Encode(const Heartbeat& beat);
/// Throws WireError on a wrong magic, an unknown kind or flag, or a number other than `sequence`.
Heartbeat DecodeHeartbeat(std::span<const std::byte, Heartbeat::kBytes> bytes,
                          std::uint64_t sequence);

/// Estimates the offset of a peer's steady clock from the exchange with the shortest round trip.
/// The error is at most half of that round trip.
class ClockEstimate {
 public:
  /// `beat` was received at `now_ns` of our clock. Ignored if it has no echo.
  void Add(const Heartbeat& beat, std::int64_t now_ns);
  /// Add it to the peer's clock to get ours; 0 before the first exchange.
  std::int64_t offset_ns() const { return offset_ns_; }

 private:
  std::int64_t offset_ns_ = 0;
  std::int64_t round_trip_ns_ = 0;  ///< of the exchange used
  std::int64_t taken_ns_ = 0;       ///< when it was taken, 0 = never
};

}  // namespace troupe
