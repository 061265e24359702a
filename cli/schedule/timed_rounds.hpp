// A configuration run as `troupe train` runs it, for the times of its steps and passes only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/job_plan.hpp"
#include "cli/schedule/stage_times.hpp"

namespace troupe {

struct MeasuredStep {
  double seconds = 0.0;           ///< from the Director's decision to begin it to its completion
  double busy_seconds = 0.0;      ///< of passes, reductions and updates, summed over ranks
  std::vector<StageTime> stages;  ///< medians over replicas, ranks and microbatches
};

/// Runs a warm-up step, then `steps`, one after the other. Throws std::runtime_error with the cause
/// when the job fails.
std::vector<MeasuredStep> RunSteps(const std::shared_ptr<const JobPlan>& plan, int steps);

}  // namespace troupe
