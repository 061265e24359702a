// What a silence means. Pure: times and TCP's counts in, a judgement out.
#pragma once

#include <chrono>
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

/// Of one peer, now.
struct Silence {
  std::chrono::nanoseconds length{0};  ///< since its last heartbeat
  bool host_answers = true;            ///< its kernel acknowledges what we send
};

enum class Judgement { kNothing, kSuspect, kBack, kStopped, kVanished };

Judgement Judge(Presence presence, const Silence& silence, const WatchOptions& options);

/// Something we sent is unacknowledged, and nothing at all has been acknowledged for half of the
/// silence: the host does not answer. Nothing unacknowledged means that it does.
bool HostAnswers(bool unacknowledged, std::chrono::nanoseconds since_acknowledgement,
                 std::chrono::nanoseconds silence);

/// One peer has just vanished: have all the others, too, so that it is we who are cut off? `others`
/// are those not lost and not gone before; their silences may have begun two intervals later (one
/// between heartbeats, one for the network's own variation).
bool CutOff(std::span<const Silence> others, const WatchOptions& options);

/// This process itself did not run for so long that silences tell nothing.
bool Overslept(std::chrono::nanoseconds between_rounds, const WatchOptions& options);

// The lines. "n2 is silent for 1.0 s: its host answers, the process does not (stopped, or its
// machine is overloaded?)", and so on. They speak of the configured times, so that all who notice
// agree.
std::string SuspectedLine(const std::string& name, bool host_answers, const WatchOptions& options);
std::string BackLine(const std::string& name, std::chrono::nanoseconds silence);
std::string KilledLine(const std::string& name);
std::string GaveUpLine(const std::string& name);
std::string StoppedLine(const std::string& name, const WatchOptions& options);
std::string VanishedLine(const std::string& name, const WatchOptions& options);
std::string CutOffLine(const std::vector<std::string>& names);

}  // namespace troupe
