// The TCP connections of this process, whichever library has made them, and those of them that
// nothing gets through.
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

/// All established ones with another machine. Descriptors that other threads open or close
/// meanwhile may be missed.
std::vector<OwnConnection> OwnConnections();

/// Follows all connections from one look to the next. Pure.
class PathProgress {
 public:
  using Time = TcpProgress::Time;
  struct Stuck {
    Address local;
    Address peer;
    std::uint32_t segment_bytes = 0;  ///< the largest packets' payload
  };

  /// Those that have taken nothing for `limit`, although the other side has room.
  std::vector<Stuck> Look(const std::vector<OwnConnection>& connections, Time now,
                          std::chrono::nanoseconds limit);

 private:
  using Ends = std::pair<std::string, std::string>;
  std::map<Ends, TcpProgress> progress_;  ///< of the connections of the last look
};

}  // namespace troupe
