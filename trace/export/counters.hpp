// The counters of a timeline: microbatches in flight, remaining credits, memory in use.
#pragma once

#include <vector>

#include "trace/export/timeline.hpp"

namespace troupe {

/// In flight: forwards begun minus backwards ended, for every stage replica with backwards, counted
/// on its first rank. Credits: the remaining credits of an edge after each message, for every
/// actor that sends messages with credits. Memory: the memory of a process in use at the end of
/// each piece of work; for ranks on a GPU, in use, reserved and peak of that GPU, next to the
/// rank's first lane. `timeline` must be complete except for its counters.
std::vector<LaneCounter> CountersOf(const TraceIndex& index, const Timeline& timeline);

}  // namespace troupe
