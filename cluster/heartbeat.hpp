// What is sent on a heartbeat connection, and what the times in it tell. Layout: docs/wire.md.
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
    kGoodbye = 2,     ///< the sender leaves on purpose: nothing follows
    kGaveUp = 3,      ///< the sender holds the receiver for lost: nothing follows
    kGaveUpPath = 4,  ///< the same, since heartbeats pass between them but larger packets do not
  };

  Kind kind = Kind::kBeat;
  std::uint64_t sequence = 0;
  Vitals vitals;
  std::int64_t sent_ns = 0;  ///< the sender's steady clock
  std::int64_t echo_ns = 0;  ///< sent_ns of the last one it had from us, 0 = none yet
  std::int64_t held_ns = 0;  ///< between receiving that and sending this
};

std::vector<std::byte> Encode(const Heartbeat& beat);
/// Throws WireError on a wrong mark, an unknown kind or flag, a number that is not `sequence`.
Heartbeat DecodeHeartbeat(std::span<const std::byte, Heartbeat::kBytes> bytes,
                          std::uint64_t sequence);

/// How far a peer's steady clock is from ours, from the exchange with the shortest round trip: half
/// of that trip is the most by which it can be wrong.
class ClockEstimate {
 public:
  /// `beat` was received at `now_ns` of our clock. One without an echo tells nothing.
  void Add(const Heartbeat& beat, std::int64_t now_ns);
  /// Add it to the peer's clock to get ours; 0 before the first exchange.
  std::int64_t offset_ns() const { return offset_ns_; }

 private:
  std::int64_t offset_ns_ = 0;
  std::int64_t round_trip_ns_ = 0;  ///< of the exchange that it is from
  std::int64_t taken_ns_ = 0;       ///< when that was, 0 = never
};

}  // namespace troupe
