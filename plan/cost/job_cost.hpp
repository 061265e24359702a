// The time of a training step of a whole job, and where it goes: the passes of its stages, played by
// the simulation of its schedule, and what follows them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/cost/device.hpp"
#include "plan/cost/stage_cost.hpp"
#include "plan/job_plan.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

struct JobCost {
  std::vector<PassCost> stages;       ///< by stage: of one unit
  std::vector<UpdateCost> updates;    ///< by stage
  std::vector<std::int64_t> link_ns;  ///< by link of the graph
  Simulation passes;                  ///< of one step
  double passes_s = 0.0;              ///< from the beginning of the step to the end of all passes
  double summed_s = 0.0;              ///< until all gradients are summed
  double updated_s = 0.0;             ///< until all parameters are updated
  double gathered_s = 0.0;            ///< until they are everywhere
  double step_s = 0.0;                ///< with what every step takes besides
};

/// Returns the passes of every stage in a unit of the most work.
std::vector<PassCost> StageCosts(const JobPlan& plan, const DeviceModel& device);

/// Returns by link the time of a tensor from one stage to the next, in ns, for a unit of the most work.
std::vector<std::int64_t> LinkTimes(const JobPlan& plan, const DeviceModel& device);

/// Returns the duration of the passes of `schedule`: a split backward takes the time of the inputs.
PassDuration DurationOf(const std::vector<PassCost>& stages, const Schedule& schedule);

/// Share of the time of all ranks of the step in which they compute nothing (docs/schedules.md).
/// Stages are weighted by their ranks.
double BubbleOf(const JobPlan& plan, const Simulation& simulation);

/// Throws LayoutError if the schedule cannot finish.
JobCost CostOfJob(const JobPlan& plan, const DeviceModel& device);

}  // namespace troupe
