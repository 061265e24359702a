// How the processes of a job come to note their messages (actors/message_trace.hpp).
#pragma once

#include <string>
#include <tuple>

#include "messages/wire.hpp"

namespace troupe {

/// From process 0, before any other actor is made: note messages and work from now on.
struct OpenTrace {
  std::string folder;  ///< where the file goes; empty: in memory only
};
inline auto Fields(OpenTrace& x) { return std::tie(x.folder); }
struct TraceOpened {
  std::string error;  ///< empty, or why there is no file
};
inline auto Fields(TraceOpened& x) { return std::tie(x.error); }

}  // namespace troupe
