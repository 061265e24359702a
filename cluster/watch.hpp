// Who is alive: heartbeats between all processes, on a thread of their own that no actor can hold
// up.
//
//   silent for suspect_after          suspected (told once, and once more when it is back)
//   silent for dead_after             dead: "stopped" if its kernel still acknowledges what we
//                                     send, "unreachable" if only packets of its own come,
//                                     "vanished" if nothing does (TCP's own counts tell)
//   heartbeats pass, but another      dead: the path between the two drops large packets
//   connection is stuck for as long
//   connection closed with a goodbye  has left
//   connection closed without one     dead: "killed"; so is one that sends what is no heartbeat
//
// Two connected peers or more that vanish together mean that this process is cut off, and the first
// loss says so. A process that did not run itself for long (stopped, asleep) forgives all silences.
//
// A heartbeat carries a count of what the process has done so far and the sender's clock, so that
// everybody knows who still makes progress and how far clocks are apart.
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
  /// The TCP socket to ask for what its host acknowledges, when `socket` is none (TLS).
  Socket wire = {};
};

/// What a process says of itself in every heartbeat.
struct Vitals {
  std::uint64_t actions = 0;  ///< grows whenever anything happens: messages handled, passes run
  bool busy = false;          ///< something is running right now
};

enum class Loss {
  kKilled,
  kVanished,
  kStopped,
  kUnreachable,   ///< cut off in one direction
  kLargePackets,  ///< what is larger than a heartbeat does not get through
};

struct WatchEvents {
  std::function<void(ProcessId, const std::string& line)>
      suspected;  ///< "n2 is silent for 1.0 s: ..."
  std::function<void(ProcessId, const std::string& line)> recovered;
  /// The line names the process and how it was lost; the same text on whoever notices.
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
  /// Events are called on the watch's thread; they must be short and must not throw. `vitals` is
  /// asked once per interval, on it, too. Any of them may be empty. Throws std::invalid_argument on
  /// options that do not fit together.
  Watch(std::vector<WatchedPeer> peers, WatchOptions options, std::function<Vitals()> vitals,
        WatchEvents events);
  ~Watch();  ///< says goodbye if Leave() has not been called, and ends the thread

  /// Tells all peers that this process is about to close on purpose. From now on no event
  /// begins to be told. Returns at once, from any thread, an event's included.
  void Leave();

  /// What the peer last said. `age` is since then, before the first heartbeat since the beginning.
  struct Seen {
    Vitals vitals;
    std::chrono::nanoseconds age{0};
    std::int64_t clock_offset_ns = 0;  ///< add to the peer's steady clock to get ours
  };
  /// Throws std::invalid_argument when `peer` is not watched.
  Seen Last(ProcessId peer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
