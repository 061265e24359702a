// The critical path of a step: the chain of waits from its end back to its beginning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/chain.hpp"
#include "trace/analyze/steps.hpp"

namespace troupe {

enum class Share : std::uint8_t {
  kCompute,     ///< work of devices
  kBoundary,    ///< leaders and phases, and messages to and from them: rows between modules
  kQueueing,    ///< time in mailboxes
  kMessages,    ///< all other handlers and messages
  kCheckpoint,  ///< devices wrote a checkpoint, and the Director committed it
  kUnknown,     ///< not in the trace
};
const char* ToString(Share share);  ///< "compute"

struct CriticalPath {
  StepSpan span;
  /// Oldest first, without gaps, from span.begin_ns to span.end_ns.
  std::vector<Segment> segments;
};

/// Starts at the work of the step that ended last.
CriticalPath CriticalPathOf(const TraceIndex& index, const StepSpan& span);

Share ShareOf(const TraceIndex& index, const Segment& segment);

/// The class of a segment, for sums over many steps: "compute F of language.s0",
/// "boundary vision>language", "queueing", "messages", "checkpoint".
std::string BucketOf(const TraceIndex& index, const Segment& segment);

/// Sequential trips between processes on the path.
int TripsOf(const CriticalPath& path, const TraceIndex& index);

/// Shares, and the path as a table; adjacent segments shorter than `fold_ns` become one line.
std::string Format(const CriticalPath& path, const TraceIndex& index, std::int64_t fold_ns);

}  // namespace troupe
