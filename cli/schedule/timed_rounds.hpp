// A configuration run as `troupe train` runs it, for the times of its steps and passes only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/job_plan.hpp"
#include "cli/schedule/stage_times.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

/// One round: from the Director's decision to begin it to its completion.
struct TimedRound {
  double seconds = 0.0;
  double other_seconds = 0.0;  ///< in reductions and updates, summed over ranks
  /// What ran, by stage of the graph; of each rank in order, one rank behind the other. Units count
  /// from 0 where they are microbatches.
  std::vector<std::vector<TimedPass>> stages;
};

/// Runs `rounds` + 1 training rounds, one after the other, and gives all but the first, in which
/// programs are made and memory is touched for the first time. Throws std::runtime_error with the
/// cause when the job fails.
std::vector<TimedRound> RunTimedRounds(const std::shared_ptr<const JobPlan>& plan, int rounds,
                                       std::int64_t microbatches);

struct MeasuredStep {
  double seconds = 0.0;       ///< from the Director's decision to begin it to its completion
  double busy_seconds = 0.0;  ///< of passes, reductions and updates, summed over ranks
  std::vector<StagePassTimes> stages;  ///< medians over replicas, ranks and microbatches
};

/// The same for steps of the plan's own number of microbatches.
std::vector<MeasuredStep> RunSteps(const std::shared_ptr<const JobPlan>& plan, int steps);

}  // namespace troupe
