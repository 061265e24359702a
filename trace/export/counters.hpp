// What a timeline counts along the way: microbatches in flight, credits left, memory in use.
#pragma once

#include <vector>

#include "trace/export/timeline.hpp"

namespace troupe {

/// In flight: of every stage replica that runs backwards in it, forwards begun and backwards not
/// ended, by its first rank. Credits: of every actor that sends messages with credits, what its
/// edge had left after each. Memory: of every process whose work says it, what was in use whenever
/// a piece ended; of every rank whose work says it of a GPU, what was in use and reserved of that
/// then, and its peak, beside the rank's first lane. Of `timeline` all but the counters must be
/// there.
std::vector<LaneCounter> CountersOf(const TraceIndex& index, const Timeline& timeline);

}  // namespace troupe
