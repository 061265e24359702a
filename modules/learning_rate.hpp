// How far the learning rate is between its two ends, as a function of the step alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>

#include "configs/config.hpp"

namespace troupe {

/// The factor in [0, 1] of 0-based `step` in a run of `total_steps`: a module's learning rate is
/// min + factor * (max - min). Rises linearly over the warm-up, its last step being at 1, then
/// follows half a cosine from 1 towards the 0 that step `total_steps` would have, or stays at 1.
/// Throws std::invalid_argument for a schedule that is neither "cosine" nor "constant".
inline double ScheduleFactor(const OptimizerConfig& optimizer, std::int64_t step,
                             std::int64_t total_steps) {
  if (optimizer.schedule != "cosine" && optimizer.schedule != "constant") {
    throw std::invalid_argument(
        "optimizer.schedule: expected \"cosine\" or \"constant\", got "
        "\"" +
        optimizer.schedule + "\"");
  }
  const std::int64_t warmup = optimizer.warmup_steps;
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (optimizer.schedule == "constant") return 1.0;
  // A resumed run may go beyond the steps it was planned for: it stays at the end of the cosine.
  const std::int64_t remaining = std::max<std::int64_t>(total_steps - warmup, 1);
  const std::int64_t done = std::min(step - warmup, remaining);
  const double progress = static_cast<double>(done) / static_cast<double>(remaining);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace troupe
