// Where the extra milliseconds of one run over another go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/analyze/steps.hpp"

namespace troupe {

/// One thing in two runs; medians over steps, in ns.
struct Change {
  std::string what;
  std::int64_t before_ns = 0;
  std::int64_t after_ns = 0;
  std::int64_t delta_ns() const { return after_ns - before_ns; }
};

struct Diff {
  Change step;  ///< length of a step
  /// Time on the critical path by bucket (critical.hpp), largest change first. The last one is the
  /// rest that medians of parts leave of the median of the whole: the deltas add up to step's.
  std::vector<Change> path;
  std::vector<Change> work;  ///< one pass or other work, by stage and kind: "F of vision.s0"
  std::vector<Change>
      edges;  ///< one message from sending to handling: "Slice over vision>language"
  std::vector<Change> waits;  ///< of one device in one step: "language.s0 for Activation over ..."
};

/// Throws std::invalid_argument when either has no training step.
Diff Compare(const TraceIndex& before, const Steps& before_steps, const TraceIndex& after,
             const Steps& after_steps);

std::string Format(const Diff& diff, const std::string& before, const std::string& after);

}  // namespace troupe
