// Detects lost processes: heartbeats between all processes, on a separate thread that no actor can
// delay.
//
//   silent for suspect_after          suspected (reported once, and once more when it recovers)
//   silent for dead_after             dead: "stopped" if its kernel still acknowledges our packets,
//                                     "unreachable" if only its own packets arrive, "vanished" if
//                                     nothing does (known from TCP's counters)
//   heartbeats pass, but another      dead: the path between the two drops large packets
//   connection is stuck for as long
//   connection closed with a goodbye  has left
//   connection closed without one     dead: "killed"; also if it sends other data than heartbeats
//
// If two or more connected peers vanish together, this process itself is cut off, and the line of
// the first loss reports that. After not running for long (stopped, asleep), a process ignores all
// silences.
//
// A heartbeat carries a count of the sender's actions and its clock, so that every process knows
// which peers make progress and how far clocks are apart.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/socket.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

struct WatchedPeer {
  ProcessId process = 0;
  std::string name;  ///< "n1", "n1.d0"
  Socket socket;
  /// If `socket` is not TCP (TLS): the TCP socket to query for acknowledgements.
  Socket wire = {};
};

/// A process's report on itself, in every heartbeat.
struct Vitals {
  std::uint64_t actions = 0;  ///< grows with every action: messages handled, passes run
  bool busy = false;          ///< an action is running now
};

enum class Loss {
  kKilled,
  kVanished,
  kStopped,
  kUnreachable,   ///< cut off in one direction
  kLargePackets,  ///< packets larger than a heartbeat do not get through
};

struct WatchEvents {
  std::function<void(ProcessId, const std::string& line)>
      suspected;  ///< "n2 is silent for 1.0 s: ..."
  std::function<void(ProcessId, const std::string& line)> recovered;
  /// The line names the process and how it was lost; the same text on every process that notices.
  std::function<void(ProcessId, Loss, const std::string& line)> lost;
};

/// interval < suspect_after < dead_after, and two intervals are less than dead_after.
struct WatchOptions {
  std::chrono::milliseconds interval{250};
  std::chrono::milliseconds suspect_after{1000};
  std::chrono::milliseconds dead_after{4000};
};

class Watch {
 public:
  /// Calls events and `vitals` (once per interval) on the watch's thread; they must be short and
  /// must not throw. Any of them may be empty. Throws std::invalid_argument for inconsistent
  /// options.
  Watch(std::vector<WatchedPeer> peers, WatchOptions options, std::function<Vitals()> vitals,
        WatchEvents events);
  ~Watch();  ///< sends goodbyes if Leave() was not called, and ends the thread

  /// Announces to all peers that this process is about to close on purpose. No event starts after
  /// this call. Returns at once, from any thread, also from an event.
  void Leave();
  /// Like Leave, but peers find this process lost, as if it had been killed.
  void Abandon();

  /// The last heartbeat of a peer.
  struct Seen {
    Vitals vitals;
    std::chrono::nanoseconds age{0};   ///< of that heartbeat; before the first one, of this object
    std::int64_t clock_offset_ns = 0;  ///< add to the peer's steady clock to get ours
  };
  /// Throws std::invalid_argument if `peer` is not watched.
  Seen Last(ProcessId peer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
