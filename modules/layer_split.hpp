// Which layers of a module run on which pipeline stage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "configs/config.hpp"
#include "layout/route.hpp"

namespace troupe {

/// The contiguous layers of every stage: as stated in layers_per_stage, else balanced by cost,
/// where the embedding burdens the first stage and the head the last with their multiplications
/// relative to one layer's (a token lookup multiplies nothing). Throws LayoutError when a stage
/// would have no layer (pp = 1 may have none) or the stated list does not fit.
std::vector<Interval> SplitLayers(const ModuleConfig& module);

/// `num_layers` layers of cost 1 cut into `num_stages` contiguous stages of at least one layer, so
/// that the largest stage costs least, `first_extra` and `last_extra` included. Among equals: the
/// most even cut, then the one with fewer layers on earlier stages, which keep more microbatches.
/// Throws LayoutError when there are fewer layers than stages (one stage may have none).
std::vector<std::int64_t> BalanceLayers(std::int64_t num_layers, int num_stages, double first_extra,
                                        double last_extra);

}  // namespace troupe
