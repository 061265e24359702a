// The current activity of a run's actors, from the trace files of its processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/recorder.hpp"

namespace troupe {

struct ActorNow {
  std::string name;
  std::string process;
  std::int64_t mailbox = 0;       ///< messages in the mailbox
  std::int64_t oldest_ns = 0;     ///< age of the oldest of them
  std::string oldest;             ///< its type
  std::string handler;            ///< type of the message in its handler; empty: none
  std::int64_t handler_ns = 0;    ///< time in the handler so far
  std::string last;               ///< type of the last handled message; empty: none
  std::int64_t last_ns = 0;       ///< time since that handler ended
  std::int64_t last_took_ns = 0;  ///< duration of that handler
  int credits = -1;               ///< remaining on its edge; -1: it has no edge
};

/// One entry per named actor, by process and name. `now_ns` is the time on the clock of
/// the files' machine; later events are ignored.
std::vector<ActorNow> ActorsNow(const std::vector<TraceFile>& files, std::int64_t now_ns);

/// The newest time in the files: the current time for a job on another machine, or one that has
/// ended.
std::int64_t NewestTime(const std::vector<TraceFile>& files);

/// A table of at most `most` lines: actors in a handler first, then those with the oldest messages.
std::string Format(std::vector<ActorNow> actors, std::size_t most);

}  // namespace troupe
