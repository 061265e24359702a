// What had not ended when a trace ends: handlers that run, messages nobody has taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/chain.hpp"

namespace troupe {

struct OpenHandler {
  int message = -1;
  std::int64_t for_ns = 0;  ///< until the last thing that the trace knows of: at least that
  std::int64_t usual_ns = 0;
  std::int64_t behind = 0;  ///< messages that came to the actor since and are not handled
};

struct Stall {
  std::vector<OpenHandler> open;  ///< the one that runs longest beyond its usual time first
  /// Sent and never handled: though the receiver took later ones (these first), or, in the last
  /// round of the trace, though it runs nothing.
  std::vector<int> lost;
};

Stall FindStall(const TraceIndex& index, const Usual& usual);

/// "device 3 runs F of microbatch 3 of language.s0 for 2.27 s at least, usual 0.18 s; ..."; empty:
/// all has ended.
std::string Format(const Stall& stall, const TraceIndex& index);

/// What the actor handles, or did last, and what lies in its mailbox: lines for people.
std::string LastDoings(const TraceIndex& index, const Usual& usual, int actor);

}  // namespace troupe
