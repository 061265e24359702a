// How far the learning rate is between its two ends, as a function of the step alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "configs/config.hpp"

namespace troupe {

/// Returns the steps of the warm-up in a run of `total_steps`; a ratio rounds up, as transformers'
/// TrainingArguments.get_warmup_steps does.
inline std::int64_t WarmupSteps(const OptimizerConfig& optimizer, std::int64_t total_steps) {
  if (!optimizer.warmup_ratio) return optimizer.warmup_steps;
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(total_steps) * *optimizer.warmup_ratio));
}

/// Returns the factor in [0, 1] of 0-based `step` in a run of `total_steps`: a learning rate is
/// min + factor * (max - min). Rises linearly over the warm-up of n steps: step i has the factor
/// (i + 1) / n, with `warmup_from_zero` i / n. Then stays at 1, or falls to the 0 that step
/// `total_steps` would have, along half a cosine or in a straight line.
///   source   with `warmup_from_zero` the factors of transformers' get_cosine_, get_linear_ and
///            get_constant_schedule_with_warmup (optimization.py, 4.57), in double precision
inline double ScheduleFactor(const OptimizerConfig& optimizer, std::int64_t step,
                             std::int64_t total_steps) {
  const std::int64_t warmup = WarmupSteps(optimizer, total_steps);
  if (step < warmup) {
    const std::int64_t risen = optimizer.warmup_from_zero ? step : step + 1;
    return static_cast<double>(risen) / static_cast<double>(warmup);
  }
  // A resumed run may go beyond the steps it was planned for: it stays at the end of the schedule.
  const std::int64_t falling = std::max<std::int64_t>(total_steps - warmup, 1);
  const std::int64_t done = std::min(step - warmup, falling);
  switch (optimizer.schedule) {
    case RateSchedule::kConstant:
      return 1.0;
    case RateSchedule::kLinear:
      return static_cast<double>(falling - done) / static_cast<double>(falling);
    case RateSchedule::kCosine:
      break;
  }
  const double progress = static_cast<double>(done) / static_cast<double>(falling);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace troupe
