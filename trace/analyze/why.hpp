// Why somebody waited: the chain of handlers and messages that its wait was made of, and the one
// link of it that is to blame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/analyze/chain.hpp"
#include "trace/analyze/steps.hpp"

namespace troupe {

/// A time in which an actor did nothing, and the message that ended it.
struct Idle {
  int actor = -1;    ///< the device, where a stage or a device is asked about
  int message = -1;  ///< the first that it handled afterwards
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct Why {
  std::int64_t step = 0;
  Idle wait;
  std::vector<Segment> chain;       ///< what the wait was made of, oldest first, without gaps
  std::vector<std::int64_t> usual;  ///< by place in `chain`: how long such a thing usually takes
                                    ///< in a step
  bool whole_step = false;          ///< it is no wait, but the critical path of the step
  int root = -1;                    ///< place in `chain`; -1: there was no wait
  bool as_usual = false;  ///< nothing in it took longer than usual: it is the schedule's own wait
  std::int64_t without_core_ns = 0;  ///< of the wait: a device on the chain wanted a core, had none
  /// A message lay in a mailbox, because the actor handled this one: its index; -1: not so.
  int busy_with = -1;
  std::vector<int> blocked;  ///< actors that did nothing until the root had ended, and then went on
                             ///< with what followed from it
};

/// The longest idle time of `actors` in the step. Of a stage it is that of its devices. Empty
/// `actors`: of all devices, the one whose root took longest beyond its usual time; or the step's
/// critical path, where that has something much worse: what nobody in the step waited for.
Why ExplainWait(const TraceIndex& index, const Usual& usual, const StepSpan& span,
                const std::vector<int>& actors);

/// The step that took longest. Throws std::out_of_range when there is none.
const StepSpan& SlowestStep(const Steps& steps);

std::string Format(const Why& why, const TraceIndex& index, const Usual& usual);

}  // namespace troupe
