// Finds the training steps, counted from 1 as on the console, among the rounds of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

/// Begins when the last work of the previous round ends, and ends with its own. So steps do not
/// overlap, although rounds are announced, and inputs read, while another round runs. The
/// first round of a trace begins when it is announced to the stages, or else with its first work.
/// A checkpoint between two rounds belongs to the later one, as on the console.
struct StepSpan {
  std::int64_t step = 0;
  std::int64_t round = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// Steps `first` to `last`, inclusive.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

class Steps {
 public:
  /// The messages of a round hold its step. If they are lost, a round trains if it has a backward,
  /// a reduction or an update, and its number follows from its neighbours; if no round has a
  /// number, the first is step 1. A last round with less work than the one before is incomplete and
  /// not a step.
  explicit Steps(const TraceIndex& index);

  const std::vector<StepSpan>& all() const { return all_; }
  /// "steps 3-12", "step 3", "no training step".
  std::string Text() const;
  /// -1: the round does not train, or is not in the trace.
  std::int64_t StepOf(std::int64_t round) const;
  /// Throws std::out_of_range with the range of known steps.
  const StepSpan& Of(std::int64_t step) const;
  /// The spans of `range`, or all. Throws like Of() for either end.
  std::vector<StepSpan> In(const std::optional<StepRange>& range) const;

 private:
  std::vector<StepSpan> all_;  ///< by round, and so by step
};

/// "12" or "10-12". Throws std::invalid_argument with the expected form.
StepRange ParseSteps(const std::string& text);

}  // namespace troupe
