// Runs a configuration as `troupe train` does, to time its steps and passes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "modules/input_source.hpp"
#include "plan/job_plan.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

/// One round: from the Director's decision to begin it to its completion.
struct TimedRound {
  double seconds = 0.0;
  double other_seconds = 0.0;  ///< in reductions and updates, summed over ranks
  /// With watch_memory: the most in use at the end of a pass, on GPUs of the fullest one; on CPUs of all ranks
  /// together, which share a heap: what it has more than before the job.
  std::int64_t memory_bytes = 0;
  /// The passes by stage of the graph: in order for each rank, one rank after the other. Units that
  /// are microbatches count from 0.
  std::vector<std::vector<TimedPass>> stages;
};

struct TimedSetup {
  std::shared_ptr<InputSource> source;  ///< with the layouts of the plan; null: opens the inputs
  bool watch_memory = false;            ///< after each pass, which takes time
};

/// Runs `rounds` + 1 training rounds, one after the other, and returns all but the first, in which
/// programs are made and memory is first touched. Throws std::runtime_error with the cause if the
/// job fails.
std::vector<TimedRound> RunTimedRounds(const std::shared_ptr<const JobPlan>& plan, int rounds,
                                       std::int64_t microbatches, const TimedSetup& timed = {});

}  // namespace troupe
