// What the actors of a run are doing right now, out of what its processes have noted so far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/recorder.hpp"

namespace troupe {

struct ActorNow {
  std::string name;
  std::string process;
  std::int64_t mailbox = 0;       ///< messages that nobody has taken yet
  std::int64_t oldest_ns = 0;     ///< how long the oldest of them has waited
  std::string oldest;             ///< its type
  std::string handler;            ///< type of the message that is handled; empty: none is
  std::int64_t handler_ns = 0;    ///< for how long
  std::string last;               ///< type of the message that was handled last; empty: none was
  std::int64_t last_ns = 0;       ///< how long ago that ended
  std::int64_t last_took_ns = 0;  ///< how long it took
  std::int64_t handled = 0;       ///< of those that the trace still holds
  int credits = -1;               ///< left on its edge; -1: it has none
};

/// One line per actor that has a name, by process and name. `now_ns` is the time on the clock of
/// the files' machine; what happened later is not looked at.
std::vector<ActorNow> ActorsNow(const std::vector<TraceFile>& files, std::int64_t now_ns);

/// The newest time in the files: of a job that runs on another machine or has ended, it is now.
std::int64_t NewestTime(const std::vector<TraceFile>& files);

/// A table, `most` lines of it: actors in a handler first, then those with the oldest messages.
std::string Format(std::vector<ActorNow> actors, std::size_t most);

}  // namespace troupe
