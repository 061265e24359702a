// Divides the layers of a module among its pipeline stages.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/config.hpp"
#include "layout/route.hpp"

namespace troupe {

/// Returns the contiguous layers of every stage: as stated in layers_per_stage, else balanced by
/// cost. The embedding adds to the first stage and the head to the last, by their operations for a
/// full sample relative to those of one layer (a token lookup has none). Throws LayoutError if a stage would have no
/// layer (pp = 1 may have none) or the stated list does not fit.
std::vector<Interval> SplitLayers(const ModuleConfig& module);

/// Returns the place of stage `pp` of `module`. Throws LayoutError as SplitLayers does.
StagePlace PlaceOf(const ModuleConfig& module, int pp);

/// Returns whether the activations of this layer of stage `pp` leave the device between a forward and
/// its backward (ModuleConfig::offload_activations). "auto": those of all layers but the last before a
/// loss, whose backward begins when its forward ends.
bool ActivationsLeave(const ModuleConfig& module, int pp, std::int64_t layer);

/// Cuts `num_layers` layers of cost 1 into `num_stages` contiguous stages of at least one layer, so
/// that the largest stage costs least, `first_extra` and `last_extra` included. Among equal cuts,
/// returns the most even one, then the one with fewer layers on earlier stages, which keep more
/// microbatches. Throws LayoutError if there are fewer layers than stages (one stage may have
/// none).
std::vector<std::int64_t> BalanceLayers(std::int64_t num_layers, int num_stages, double first_extra,
                                        double last_extra);

}  // namespace troupe
