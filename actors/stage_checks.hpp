// What a stage refuses. Pure functions: empty, or why.
#pragma once

#include <string>

#include "actors/stage_actor.hpp"

namespace troupe {

/// Why the stage's order is not one of `round`.
std::string WrongLength(const StageConfig& config, const Round& round);

/// Why the rows that arrived on `link` are not those the stage's own data speaks of.
std::string RowMismatch(const StageConfig& config, int link, const UnitPlace& place,
                        const Activation& activation, const Inputs& data);

/// "language.s1: expected the gradient of microbatch 9 from language.s2 (step 2 mb 3), got 10", if
/// `got` is not `expected`.
std::string WrongUnit(const StageState& state, const std::string& what, std::int64_t expected,
                      const ActorId& from, std::int64_t got);

}  // namespace troupe
