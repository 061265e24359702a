// Modules that take turns on the same ranks: finds them, and proposes layouts for two that could.
#pragma once

#include <cstdint>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Whether the two have the same ranks, in any order, and at least one.
bool HaveSameRanks(const ModuleConfig& a, const ModuleConfig& b);

/// Whether `module` is an encoder that shares its ranks with a module that it feeds.
bool IsColocatedEncoder(const Config& config, const ModuleConfig& module);

/// Returns the reason why keys for colocated encoders have no effect on `module`: "shares no ranks
/// with \"language\", which it feeds". Empty if they have an effect.
std::string WhyNotColocated(const Config& config, const ModuleConfig& module);

/// Returns whether the source of the edge may share the ranks of its destination: it has no other
/// edges.
bool MayColocate(const Config& config, const EdgeConfig& edge);

/// Returns whether the dp of both divide `num_ranks`, so that both can have a layout on as many
/// ranks.
bool FitsOn(std::int64_t num_ranks, const ModuleConfig& a, const ModuleConfig& b);

/// Returns layouts with which the ends of an edge could share ranks, at least as many as each has:
/// "dp 3 and dp 2 on the same ranks need a multiple of 6 ranks: e.g. 6 ranks, vision tp 2 dp 3,
/// language pp 3 dp 2".
std::string ColocatingHint(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
