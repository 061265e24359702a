// The rounds of a run: training steps, with held-out evaluations before, after and between.
#pragma once

#include "actors/director_actor.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Evaluates `held_out` samples before the first step, every run.evaluate_every steps, and after
/// the last; not at all when there are none.
RoundPlan TrainingPlan(const Config& config, std::int64_t held_out);

/// The same rounds from the first one on that comes after `steps` training steps, which is number
/// 0: the actors of a new start have seen none.
RoundPlan ResumeAfter(const RoundPlan& plan, std::int64_t steps);

/// `steps` training rounds and nothing else.
RoundPlan StepsOnly(const Config& config, std::int64_t steps);

}  // namespace troupe
