// TCP's view of a connection: whether sent bytes are acknowledged and whether packets arrive.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe {

/// A snapshot of one connection.
struct TcpState {
  bool established = false;
  bool unacknowledged = false;           ///< some bytes sent or waiting to be sent
  bool window_open = true;               ///< the other side has room for a packet
  std::uint64_t acknowledged_bytes = 0;  ///< in total
  std::uint64_t received_segments = 0;   ///< in total, with acknowledgements and retransmissions
  std::uint32_t segment_bytes = 0;       ///< payload of the largest packets sent
};

/// Nothing if the descriptor is not a TCP socket.
std::optional<TcpState> ReadTcpState(int fd);

/// Follows one connection. Pure.
class TcpProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit TcpProgress(Time now) : progress_(now), arrival_(now) {}
  void Observe(const TcpState& state, Time now);

  /// For how long sent bytes have waited without any acknowledgement although the other side has
  /// room; 0 if none wait.
  std::chrono::nanoseconds stuck(Time now) const { return now - progress_; }
  /// Time since the last packet arrived.
  std::chrono::nanoseconds quiet(Time now) const { return now - arrival_; }

 private:
  Time progress_;  ///< when bytes last stopped waiting or some were acknowledged
  Time arrival_;
  TcpState last_;
};

}  // namespace troupe
