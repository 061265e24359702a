// Lists the TCP connections of this process, including those of its libraries, and finds the ones
// that make no progress.
#pragma once

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "cluster/socket.hpp"
#include "cluster/tcp_progress.hpp"

namespace troupe {

struct OwnConnection {
  Address local;
  Address peer;
  TcpState state;
};

/// All established connections to other machines. May miss descriptors that other threads open or
/// close concurrently.
std::vector<OwnConnection> OwnConnections();

/// Follows all connections from one snapshot to the next. Pure.
class PathProgress {
 public:
  using Time = TcpProgress::Time;
  struct Stuck {
    Address local;
    Address peer;
    std::uint32_t segment_bytes = 0;  ///< payload of the largest packets
  };

  /// The connections that have delivered nothing for `limit`, although the receiver has room.
  std::vector<Stuck> Look(const std::vector<OwnConnection>& connections, Time now,
                          std::chrono::nanoseconds limit);

 private:
  using Ends = std::pair<std::string, std::string>;
  std::map<Ends, TcpProgress> progress_;  ///< by connection of the last snapshot
};

}  // namespace troupe
