// What a stage's rule looks at, counted from what has arrived. Pure functions of the state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "actors/stage_actor.hpp"
#include "trace/unit_place.hpp"

namespace troupe {

/// Whether units of the round that is running come back. There must be one.
bool NeedsBackward(const StageState& s);

/// Where `unit` is in its step, for errors; unknown if it is of no round that has begun here.
UnitPlace PlaceOf(const StageState& s, std::int64_t unit);

/// Counts activations that are here in order: from now on the rule may see them.
void CountActivations(StageState& s, std::size_t link);
/// The same for gradients.
void CountGradients(StageState& s, std::size_t link);

/// Sets the counters of the rule: a unit is here when all links have brought it.
void Recount(StageState& s);

}  // namespace troupe
