// Runs a configuration as `troupe train` does, to time its steps and passes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/job_plan.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

/// One round: from the Director's decision to begin it to its completion.
struct TimedRound {
  double seconds = 0.0;
  double other_seconds = 0.0;  ///< in reductions and updates, summed over ranks
  /// The passes by stage of the graph: in order for each rank, one rank after the other. Units that
  /// are microbatches count from 0.
  std::vector<std::vector<TimedPass>> stages;
};

/// Runs `rounds` + 1 training rounds, one after the other, and returns all but the first, in which
/// programs are made and memory is first touched. Throws std::runtime_error with the cause if the
/// job fails.
std::vector<TimedRound> RunTimedRounds(const std::shared_ptr<const JobPlan>& plan, int rounds,
                                       std::int64_t microbatches);

}  // namespace troupe
