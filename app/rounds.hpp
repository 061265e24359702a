// The rounds of a run: training steps, with held-out evaluations before, after and between.
#pragma once

#include "actors/job_course.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Returns training rounds, with an evaluation of `held_out` samples before the first step, every
/// run.evaluate_every steps, and after the last; without evaluations if `held_out` is 0.
RoundPlan TrainingPlan(const Config& config, std::int64_t held_out);

/// Returns the rounds of `plan` after `steps` training steps, numbered from 0 for the actors of the
/// new start.
RoundPlan ResumeAfter(const RoundPlan& plan, std::int64_t steps);

/// Returns `steps` training rounds without evaluations.
RoundPlan StepsOnly(const Config& config, std::int64_t steps);

}  // namespace troupe
