// Rounds counted in units: what a stage, feed or phase needs to know of the rounds to come.
#pragma once

#include <cstdint>

#include "modules/stage_program.hpp"

namespace troupe {

/// Units of `microbatches_per_unit` microbatches that cover `microbatches` of them; the last may be
/// shorter. 0 microbatches per unit means one unit for the whole round.
inline std::int64_t UnitsIn(std::int64_t microbatches, std::int64_t microbatches_per_unit) {
  if (microbatches_per_unit == 0) return microbatches == 0 ? 0 : 1;
  return (microbatches + microbatches_per_unit - 1) / microbatches_per_unit;
}

}  // namespace troupe
