// The critical path of a step: what its end was waiting for, back to its beginning.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/analyze/chain.hpp"
#include "trace/analyze/steps.hpp"

namespace troupe {

enum class Share : std::uint8_t {
  kCompute,     ///< devices worked
  kBoundary,    ///< leaders and phases, and the way to and from them: rows between modules
  kQueueing,    ///< in mailboxes
  kMessages,    ///< all other handlers and ways: deciding and passing on
  kCheckpoint,  ///< devices wrote one, and the Director completed it
  kUnknown,     ///< not in the trace
};
const char* ToString(Share share);  ///< "compute"

struct CriticalPath {
  StepSpan span;
  /// Oldest first, without gaps, from span.begin_ns to span.end_ns.
  std::vector<Segment> segments;
};

/// Of the step whose last work ended last.
CriticalPath CriticalPathOf(const TraceIndex& index, const StepSpan& span);

Share ShareOf(const TraceIndex& index, const Segment& segment);

/// What a segment is an instance of, so that the same things of many steps can be added up:
/// "compute F of language.s0", "boundary vision>language", "queueing", "messages", "checkpoint".
std::string BucketOf(const TraceIndex& index, const Segment& segment);

/// Ways between processes on the path: how often the step waited for a network, one time after the
/// other.
int TripsOf(const CriticalPath& path, const TraceIndex& index);

/// Nanoseconds by bucket; their sum is the length of the step.
std::map<std::string, std::int64_t> BucketsOf(const TraceIndex& index, const CriticalPath& path);

/// Shares, and the path as a table; neighbours shorter than `fold_ns` become one line.
std::string Format(const CriticalPath& path, const TraceIndex& index, std::int64_t fold_ns);

}  // namespace troupe
