// Explains a wait: the chain of handlers and messages that made it up, and the segment to blame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/chain.hpp"
#include "trace/analyze/steps.hpp"

namespace troupe {

/// A time in which an actor was idle, and the message that ended it.
struct Idle {
  int actor = -1;    ///< for a stage, its device
  int message = -1;  ///< the first that it handled afterwards
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

struct Why {
  std::int64_t step = 0;
  Idle wait;
  std::vector<Segment> chain;       ///< the segments of the wait, oldest first, without gaps
  std::vector<std::int64_t> usual;  ///< usual duration of each segment in a step
  bool whole_step = false;          ///< not a wait, but the critical path of the step
  int root = -1;                    ///< index in `chain`; -1: there was no wait
  bool as_usual = false;  ///< nothing took longer than usual: the wait follows from the schedule
  std::int64_t without_core_ns = 0;  ///< part of the wait: a device on the chain had no core
  /// If the root is a message in a mailbox: the message that its actor handled then; -1: none.
  int busy_with = -1;
  std::vector<int> blocked;  ///< actors that were idle until the root ended, and then continued
                             ///< with work that it caused
};

/// Explains the longest idle time of `actors` in the step; for a stage, that of its devices.
/// Without actors, it takes the wait, over all devices, whose root most exceeds its usual time; or
/// the step's critical path if a segment of that is much worse and delayed no device in the step.
Why ExplainWait(const TraceIndex& index, const Usual& usual, const StepSpan& span,
                const std::vector<int>& actors);

/// The longest step. Throws std::out_of_range if there is none.
const StepSpan& SlowestStep(const Steps& steps);

std::string Format(const Why& why, const TraceIndex& index, const Usual& usual);

}  // namespace troupe
