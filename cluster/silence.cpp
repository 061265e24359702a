#include "cluster/silence.hpp"

#include <algorithm>

#include "cluster/text.hpp"

namespace troupe {

Judgement Judge(Presence presence, const Silence& silence, const WatchOptions& options) {
  if (presence == Presence::kLost || presence == Presence::kLeft) return Judgement::kNothing;
  if (silence.length >= options.dead_after)
    return silence.host_answers ? Judgement::kStopped : Judgement::kVanished;
  const bool suspect = silence.length >= options.suspect_after;
  if (suspect && presence == Presence::kPresent) return Judgement::kSuspect;
  if (!suspect && presence == Presence::kSuspected) return Judgement::kBack;
  return Judgement::kNothing;
}

bool HostAnswers(bool unacknowledged, std::chrono::nanoseconds since_acknowledgement,
                 std::chrono::nanoseconds silence) {
  return !unacknowledged || since_acknowledgement <= silence / 2;
}

bool CutOff(std::span<const Silence> others, const WatchOptions& options) {
  return !others.empty() && std::all_of(others.begin(), others.end(), [&](const Silence& other) {
    return !other.host_answers && other.length >= options.dead_after - 2 * options.interval;
  });
}

bool Overslept(std::chrono::nanoseconds between_rounds, const WatchOptions& options) {
  return between_rounds > options.dead_after / 2;
}

std::string SuspectedLine(const std::string& name, bool host_answers, const WatchOptions& options) {
  return name + " is silent for " + InTenths(options.suspect_after) +
         (host_answers ? ": its host answers, the process does not (stopped, or its machine is "
                         "overloaded?)"
                       : ": its host does not answer (network?)");
}

std::string BackLine(const std::string& name, std::chrono::nanoseconds silence) {
  return name + " is back after " + InTenths(silence);
}

std::string KilledLine(const std::string& name) {
  return name + " ended without a goodbye (killed, crashed or out of memory?)";
}

std::string GaveUpLine(const std::string& name) {
  return name + " has given this process up: it did not answer for too long (stopped, cut off?)";
}

std::string StoppedLine(const std::string& name, const WatchOptions& options) {
  return name + " is stopped: its host answers, the process has been silent for " +
         InTenths(options.dead_after);
}

std::string VanishedLine(const std::string& name, const WatchOptions& options) {
  return name + " vanished: its host has not answered for " + InTenths(options.dead_after) +
         " (host down or network cut)";
}

std::string CutOffLine(const std::vector<std::string>& names) {
  return "this node is cut off: none of " + Enumerate(names) + " answers";
}

}  // namespace troupe
