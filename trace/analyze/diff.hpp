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
  std::string module;  ///< whose it is; empty: of no module
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
  std::vector<Change> waits;  ///< of one device in one step: "language.s0 for activation from ..."
};

/// Stages are compared one by one where both runs cut their module alike, else added up by module.
/// Throws std::invalid_argument when either has no training step.
Diff Compare(const TraceIndex& before, const Steps& before_steps, const TraceIndex& after,
             const Steps& after_steps);

/// What of the critical path changed most in the direction in which the step did; null: nothing.
const Change* MainChange(const Diff& diff);

/// The tables: changes of a module together, those of the most changed module first. What did not
/// change is left out.
std::string Format(const Diff& diff);

}  // namespace troupe
