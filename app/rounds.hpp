// The rounds of a run: training steps, with held-out evaluations before, after and between.
#pragma once

#include "actors/job_course.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Where a start of a run begins.
struct RunStart {
  std::int64_t step = 0;   ///< training steps done
  std::int64_t place = 0;  ///< DataPosition::place
  std::int64_t group = 0;  ///< DataPosition::group; 0: the global batch
};

/// Returns DataPosition::place after `step` steps.
std::int64_t PlaceAfter(const Config& config, const RunStart& start, std::int64_t step);

/// Returns training rounds after `start`, with an evaluation of `held_out` samples before the first
/// step, every run.evaluate_every steps, and after the last; without evaluations if `held_out` is 0.
/// They are numbered from 0.
RoundPlan TrainingPlan(const Config& config, std::int64_t held_out, const RunStart& start = {});

/// Returns `steps` training rounds without evaluations.
RoundPlan StepsOnly(const Config& config, std::int64_t steps);

}  // namespace troupe
