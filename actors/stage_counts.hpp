// What a stage's rule looks at, counted from what has arrived. Pure functions of the state.
#pragma once

#include <cstddef>

#include "actors/stage_actor.hpp"

namespace troupe {

/// Whether units of the round that is running come back. There must be one.
bool NeedsBackward(const StageState& s);

/// Counts activations that are here in order: from now on the rule may see them.
void CountActivations(StageState& s, std::size_t link);
/// The same for gradients.
void CountGradients(StageState& s, std::size_t link);

/// Sets the counters of the rule: a unit is here when all links have brought it.
void Recount(StageState& s);

}  // namespace troupe
