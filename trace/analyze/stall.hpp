// Unfinished activity at the end of a trace: running handlers and unhandled messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/chain.hpp"

namespace troupe {

struct OpenHandler {
  int message = -1;
  std::int64_t for_ns = 0;  ///< up to the end of the trace: a lower bound
  std::int64_t usual_ns = 0;
  std::int64_t waiting = 0;  ///< later messages in the actor's mailbox
};

struct Stall {
  std::vector<OpenHandler> open;  ///< by the excess over the usual time, largest first
  /// Messages that were sent and never handled although the receiver handled later ones (these
  /// first), or, in the last round of the trace, although it runs no handler.
  std::vector<int> lost;
};

Stall FindStall(const TraceIndex& index, const Usual& usual);

/// "device 3 runs F of language.s0 (step 2 mb 3), for 2.27 s at least, usual 0.18 s; ..."; empty if
/// nothing is open.
std::string Format(const Stall& stall, const TraceIndex& index);

/// Lines for people: the actor's current or last handler, and the contents of its mailbox.
std::string LastActivity(const TraceIndex& index, const Usual& usual, int actor);

}  // namespace troupe
