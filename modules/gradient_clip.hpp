// How the gradients of a step are scaled so that their norm does not exceed a limit. A function of
// its own because every Update computes it for itself, and all must come to the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace troupe {

struct GradientClip {
  double norm = 0.0;         ///< of all gradients together; may be infinite or not a number
  double coefficient = 1.0;  ///< that gradients are multiplied by
};

/// Of the shares that make up the squared norm, added in their order. A `clip_norm` of 0 does not
/// clip.
inline GradientClip ClipOf(const std::vector<double>& squared_norms, double clip_norm) {
  GradientClip clip;
  clip.norm = std::sqrt(std::accumulate(squared_norms.begin(), squared_norms.end(), 0.0));
  if (clip_norm > 0.0) clip.coefficient = std::min(1.0, clip_norm / (clip.norm + 1e-6));
  return clip;
}

}  // namespace troupe
