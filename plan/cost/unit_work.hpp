// The work of the units of a step whose samples are known.
#pragma once

#include <cstdint>
#include <vector>

#include "kinds/work.hpp"
#include "plan/job_plan.hpp"

namespace troupe {

/// The samples of a step, by place of its batch: one each, those of a pack, or none.
using PlacedSamples = std::vector<std::vector<StepShape>>;

/// Returns the work of one replica in a unit of a round of schedule.microbatches: a shape for each
/// length of its samples, or one if the replica pads all of them to the longest.
std::vector<StepShape> WorkOfUnit(const JobPlan& plan, const PlacedSamples& samples, int module,
                                  int dp, std::int64_t unit);

/// Returns the samples in the places that data.order gives them: those they have, or balanced ones.
PlacedSamples InOrder(const Config& config, const PlacedSamples& samples);

/// Returns which part of the largest tensors that a microbatch can have these samples fill on average: a
/// number in [0, 1] by module.
std::vector<double> FilledParts(const JobPlan& plan, const PlacedSamples& samples);

}  // namespace troupe
