// The time of a training step of a whole job, and where it goes: the passes of its stages, played by
// the simulation of its schedule, and what follows them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/cost/job_devices.hpp"
#include "plan/cost/stage_cost.hpp"
#include "plan/cost/unit_work.hpp"
#include "plan/job_plan.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

/// The passes of one replica of a stage in a step.
class UnitCosts {
 public:
  /// One for each unit, or one if all are alike.
  explicit UnitCosts(std::vector<PassCost> units) : units_(std::move(units)) {}
  const PassCost& Of(std::int64_t unit) const {
    return units_.size() == 1 ? units_.front() : units_.at(static_cast<std::size_t>(unit));
  }

 private:
  std::vector<PassCost> units_;
};

struct JobCost {
  /// By stage: of the replicas of the sink that ends its passes last, and of those that feed it.
  std::vector<UnitCosts> stages;
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
std::vector<PassCost> StageCosts(const JobPlan& plan, const JobDevices& devices);

/// Returns by link the time of a tensor from one stage to the next, in ns, for a unit of the most work.
std::vector<std::int64_t> LinkTimes(const JobPlan& plan, const JobDevices& devices);

/// Share of the time of all ranks of the step in which they compute nothing (docs/schedules.md).
/// Stages are weighted by their ranks.
double BubbleOf(const JobPlan& plan, const Simulation& simulation);

/// Returns the cost of a step in which every unit has the most work. Throws LayoutError if the schedule
/// cannot finish.
JobCost CostOfJob(const JobPlan& plan, const JobDevices& devices);
/// The same for a step of these samples, one entry for each place of the global batch. Tensors between
/// stages have their average size.
JobCost CostOfJob(const JobPlan& plan, const JobDevices& devices, const PlacedSamples& samples);

/// The passes of a stage in a step: by unit, by replica.
using ReplicaCosts = std::vector<std::vector<PassCost>>;

/// Plays a step of these passes, by stage of the job. They are simulated once for each replica of the sink,
/// with the replicas of encoders that have its samples: the slowest of them at a time. Returns the
/// slowest, with nothing but its passes.
JobCost PlayedPasses(const JobPlan& plan, const std::vector<ReplicaCosts>& costs,
                     const std::vector<std::int64_t>& link_ns);

}  // namespace troupe
