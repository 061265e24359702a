// Explains the difference between the step times of two runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/steps.hpp"

namespace troupe {

/// One quantity in two runs; medians over steps, in ns.
struct Change {
  std::string module;  ///< empty: belongs to no module
  std::string what;
  std::int64_t before_ns = 0;
  std::int64_t after_ns = 0;
  std::int64_t delta_ns() const { return after_ns - before_ns; }
};

struct Diff {
  Change step;  ///< length of a step
  /// Time on the critical path by bucket (critical.hpp), largest change first. The last entry is
  /// the rest, since medians of parts do not add up to the median of the whole. The deltas add up
  /// to that of `step`.
  std::vector<Change> path;
  std::vector<Change> work;   ///< one pass or other work, by stage and kind: "F of vision.s0"
  std::vector<Change> edges;  ///< one message until it is handled: "Slice over vision>language"
  std::vector<Change> waits;  ///< of one device in one step: "language.s0 for activation from ..."
};

/// Compares single stages if both runs cut their module alike, else sums by module.
/// Throws std::invalid_argument if either run has no training step.
Diff Compare(const TraceIndex& before, const Steps& before_steps, const TraceIndex& after,
             const Steps& after_steps);

/// The largest change on the critical path in the direction of the step's change; null: none.
const Change* MainChange(const Diff& diff);

/// The tables: changes grouped by module, the most changed module first, without unchanged lines.
std::string Format(const Diff& diff);

}  // namespace troupe
