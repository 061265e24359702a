// What a silence means. Pure: times and TCP's counts in, a judgement out.
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
  kLost,  ///< for good: told once
  kLeft,  ///< has said goodbye
};

/// What comes from the host of a silent process.
enum class HostSign {
  kAnswers,    ///< its kernel acknowledges what we send
  kSendsOnly,  ///< packets, but no acknowledgement: what we send does not reach it
  kNothing,
};

/// Of one peer, now.
struct Silence {
  std::chrono::nanoseconds length{0};  ///< since its last heartbeat
  HostSign host = HostSign::kAnswers;
  /// For how long what we sent has waited for an acknowledgement (TcpProgress). A host that we do
  /// not reach repeats its heartbeats in ever longer breaks, and ends each silence.
  std::chrono::nanoseconds stuck{0};
};

enum class Judgement { kNothing, kSuspect, kBack, kStopped, kUnreachable, kVanished };

Judgement Judge(Presence presence, const Silence& silence, const WatchOptions& options);

/// `stuck` as in Silence: most of the silence, and the host does not answer. `quiet`: since any
/// packet came from it. The breaks between what it repeats are up to half of the time.
HostSign SignOf(std::chrono::nanoseconds stuck, std::chrono::nanoseconds quiet,
                std::chrono::nanoseconds silence);

/// One peer has just vanished: have all the others, too, so that it is we who are cut off? `others`
/// are those not lost and not gone before; their silences may have begun two intervals later (one
/// between heartbeats, one for the network's own variation).
bool CutOff(std::span<const Silence> others, const WatchOptions& options);

/// This process itself did not run for so long that silences tell nothing.
bool Overslept(std::chrono::nanoseconds between_rounds, const WatchOptions& options);

// The lines. "n2 is silent for 1.0 s: its host answers, the process does not (stopped, or its
// machine is overloaded?)", and so on. They name the configured times, so that all processes that
// notice a loss print the same. Those of a loss are written to follow "lost ".
std::string SuspectedLine(const std::string& name, HostSign host, const WatchOptions& options);
std::string BackLine(const std::string& name, std::chrono::nanoseconds silence);
std::string KilledLine(const std::string& name);
std::string GaveUpLine(const std::string& name);
std::string StoppedLine(const std::string& name, const WatchOptions& options);
std::string VanishedLine(const std::string& name, const WatchOptions& options);
std::string UnreachableLine(const std::string& name, const WatchOptions& options);
/// Of the connection from `local` to `peer`, with packets of so much payload.
std::string LargePacketsLine(const std::string& name, const Address& local, const Address& peer,
                             std::uint32_t segment_bytes, const WatchOptions& options);
std::string PathGivenUpLine(const std::string& name);
std::string CutOffLine(const std::vector<std::string>& names);

}  // namespace troupe
