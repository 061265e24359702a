// Judges the silence of a peer. Pure: times and TCP's counters in, a judgement out.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cluster/watch.hpp"

namespace troupe {

enum class Presence {
  kPresent,
  kSuspected,
  kLost,  ///< final, reported once
  kLeft,  ///< has sent a goodbye
};

/// The sign of life from the host of a silent process.
enum class HostSign {
  kAnswers,    ///< its kernel acknowledges our packets
  kSendsOnly,  ///< packets, but no acknowledgements: our packets do not reach it
  kNothing,
};

/// The current silence of one peer.
struct Silence {
  std::chrono::nanoseconds length{0};  ///< since its last heartbeat
  HostSign host = HostSign::kAnswers;
  /// For how long sent bytes have waited for an acknowledgement (TcpProgress). A host that our
  /// packets do not reach retransmits its heartbeats with growing pauses, and each one ends a
  /// silence.
  std::chrono::nanoseconds stuck{0};
};

enum class Judgement { kNothing, kSuspect, kBack, kStopped, kUnreachable, kVanished };

Judgement Judge(Presence presence, const Silence& silence, const WatchOptions& options);

/// `stuck` as in Silence: the host does not answer if it is most of the silence. `quiet` is the
/// time since any packet from the host. The pauses between retransmissions are up to half of the
/// total time.
HostSign SignOf(std::chrono::nanoseconds stuck, std::chrono::nanoseconds quiet,
                std::chrono::nanoseconds silence);

/// One peer has just vanished. True if all others have, too, so that this process is the one cut
/// off. `others` are the peers neither lost nor gone before. Their silences may have begun two
/// intervals later: one between heartbeats, one for the network's variation.
bool CutOff(std::span<const Silence> others, const WatchOptions& options);

/// Whether this process itself was not running for so long that silences mean nothing.
bool Overslept(std::chrono::nanoseconds between_rounds, const WatchOptions& options);

// Lines for people, such as "n2 is silent for 1.0 s: its host answers, the process does not
// (stopped, or its machine is overloaded?)". They contain the configured times, so that all
// processes that notice a loss print the same line. The lines of a loss follow the word "lost".
std::string SuspectedLine(const std::string& name, HostSign host, const WatchOptions& options);
std::string BackLine(const std::string& name, std::chrono::nanoseconds silence);
std::string KilledLine(const std::string& name);
std::string GaveUpLine(const std::string& name);
std::string StoppedLine(const std::string& name, const WatchOptions& options);
std::string VanishedLine(const std::string& name, const WatchOptions& options);
std::string UnreachableLine(const std::string& name, const WatchOptions& options);
/// For the connection from `local` to `peer`, whose packets have `segment_bytes` of payload.
std::string LargePacketsLine(const std::string& name, const Address& local, const Address& peer,
                             std::uint32_t segment_bytes, const WatchOptions& options);
std::string PathGivenUpLine(const std::string& name);
std::string CutOffLine(const std::vector<std::string>& names);

}  // namespace troupe
