// Training steps, counted from 1 as the console prints them, among the rounds of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

/// Until the last work of the step's round ended, and from when that of the round before did: steps
/// do not overlap, although rounds are announced, and inputs read, while another still runs. The
/// first round of a trace begins when it is announced to the stages, or else with its first work.
/// A checkpoint that is written between two rounds is in the later one, as on the console.
struct StepSpan {
  std::int64_t step = 0;
  std::int64_t round = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Steps `first` to `last`, both included.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

class Steps {
 public:
  /// Which rounds train, and which step each is, is what their messages say. A round whose messages
  /// say nothing any more trains if it has a backward, a reduction or an update, and its number
  /// follows from its neighbours'; where no round says anything, the first is step 1. A last round
  /// with less work than the one before has not ended: it is none.
  explicit Steps(const TraceIndex& index);

  const std::vector<StepSpan>& all() const { return all_; }
  /// -1: the round does not train, or is not in the trace.
  std::int64_t StepOf(std::int64_t round) const;
  /// Throws std::out_of_range that says which steps there are.
  const StepSpan& Of(std::int64_t step) const;
  /// The spans of `range`; all of them without one. Throws as Of() does, for either end.
  std::vector<StepSpan> In(const std::optional<StepRange>& range) const;

 private:
  std::vector<StepSpan> all_;  ///< by round, and so by step
};

/// "12" or "10-12". Throws std::invalid_argument that says what was expected.
StepRange ParseSteps(const std::string& text);

}  // namespace troupe
