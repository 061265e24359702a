// What TCP knows of a connection: whether what we send gets through, whether anything comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe {

/// Of one connection, now.
struct TcpState {
  bool established = false;
  bool unacknowledged = false;           ///< some of what was to be sent
  bool window_open = true;               ///< the other side has room for a packet
  std::uint64_t acknowledged_bytes = 0;  ///< in all
  std::uint64_t received_segments = 0;   ///< in all, acknowledgements and repetitions included
  std::uint32_t segment_bytes = 0;       ///< the largest that is sent
};

/// Nothing for what is not a TCP socket.
std::optional<TcpState> ReadTcpState(int fd);

/// Follows one connection. Pure.
class TcpProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit TcpProgress(Time now) : progress_(now), arrival_(now) {}
  void Observe(const TcpState& state, Time now);

  /// For how long something sent has waited without any of it being acknowledged, while the other
  /// side has room; 0 when nothing waits.
  std::chrono::nanoseconds stuck(Time now) const { return now - progress_; }
  /// Since anything came.
  std::chrono::nanoseconds quiet(Time now) const { return now - arrival_; }

 private:
  Time progress_;  ///< the last time that nothing waited, or less than before
  Time arrival_;
  TcpState last_;
};

}  // namespace troupe
