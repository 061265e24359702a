#include "cluster/silence.hpp"

#include <algorithm>

#include "cluster/text.hpp"

namespace troupe {

Judgement Judge(Presence presence, const Silence& silence, const WatchOptions& options) {
  if (presence == Presence::kLost || presence == Presence::kLeft) return Judgement::kNothing;
  if (silence.length >= options.dead_after) {
    switch (silence.host) {
      case HostSign::kAnswers:
        return Judgement::kStopped;
      case HostSign::kSendsOnly:
        return Judgement::kUnreachable;
      case HostSign::kNothing:
        return Judgement::kVanished;
    }
  }
  if (silence.host == HostSign::kSendsOnly && silence.stuck >= options.dead_after)
    return Judgement::kUnreachable;
  const bool suspect = silence.length >= options.suspect_after;
  if (suspect && presence == Presence::kPresent) return Judgement::kSuspect;
  if (!suspect && presence == Presence::kSuspected) return Judgement::kBack;
  return Judgement::kNothing;
}

HostSign SignOf(std::chrono::nanoseconds stuck, std::chrono::nanoseconds quiet,
                std::chrono::nanoseconds silence) {
  if (stuck <= silence / 2) return HostSign::kAnswers;
  return quiet <= stuck * 3 / 4 ? HostSign::kSendsOnly : HostSign::kNothing;
}

bool CutOff(std::span<const Silence> others, const WatchOptions& options) {
  return !others.empty() && std::all_of(others.begin(), others.end(), [&](const Silence& other) {
    return other.host == HostSign::kNothing &&
           other.length >= options.dead_after - 2 * options.interval;
  });
}

bool Overslept(std::chrono::nanoseconds between_rounds, const WatchOptions& options) {
  return between_rounds > options.dead_after / 2;
}

std::string SuspectedLine(const std::string& name, HostSign host, const WatchOptions& options) {
  const std::string line = name + " is silent for " + InTenths(options.suspect_after);
  switch (host) {
    case HostSign::kAnswers:
      return line +
             ": its host answers, the process does not (stopped, or its machine is overloaded?)";
    case HostSign::kSendsOnly:
      return line + ": packets come from its host, but ours do not reach it (network?)";
    case HostSign::kNothing:
      return line + ": its host does not answer (network?)";
  }
  return line;
}

std::string BackLine(const std::string& name, std::chrono::nanoseconds silence) {
  return name + " is back after " + InTenths(silence);
}

std::string KilledLine(const std::string& name) {
  return name + ": its process ended without saying goodbye (killed, crashed or out of memory?)";
}

std::string GaveUpLine(const std::string& name) {
  return name +
         ": it gave up on this process, which did not answer for too long (stopped, cut "
         "off?)";
}

std::string StoppedLine(const std::string& name, const WatchOptions& options) {
  return name + ": it is stopped: its host answers, but the process has been silent for " +
         InTenths(options.dead_after);
}

std::string VanishedLine(const std::string& name, const WatchOptions& options) {
  return name + ": it vanished: its host has not answered for " + InTenths(options.dead_after) +
         " (host down or network cut)";
}

std::string UnreachableLine(const std::string& name, const WatchOptions& options) {
  return name + ": packets come from its host, but ours have not reached it for " +
         InTenths(options.dead_after) + " (network cut in one direction)";
}

std::string LargePacketsLine(const std::string& name, const Address& local, const Address& peer,
                             std::uint32_t segment_bytes, const WatchOptions& options) {
  return name + ": heartbeats pass, but the connection from " + ToString(local) + " to " +
         ToString(peer) + " has delivered nothing for " + InTenths(options.dead_after) +
         ": does the path drop packets with " + std::to_string(segment_bytes) +
         " bytes of data (MTU)?";
}

std::string PathGivenUpLine(const std::string& name) {
  return name +
         ": heartbeats pass, but its larger packets do not arrive here: does the path drop them "
         "(MTU)?";
}

std::string CutOffLine(const std::vector<std::string>& names) {
  return Enumerate(names) + ": none of them answers: this node is cut off";
}

}  // namespace troupe
