// The message by which the processes of a job begin to record messages (actors/message_trace.hpp).
#pragma once

#include <string>
#include <tuple>

#include "messages/wire.hpp"

namespace troupe {

/// From process 0, before any other actor is created: record messages and work from now on.
struct OpenTrace {
  std::string folder;  ///< of the file; empty: in memory only
};
inline auto Fields(OpenTrace& x) { return std::tie(x.folder); }
struct TraceOpened {
  std::string error;  ///< why there is no file, or empty
};
inline auto Fields(TraceOpened& x) { return std::tie(x.error); }

}  // namespace troupe
