// Modules that take turns on the same ranks: which do, and how two could.
#pragma once

#include <cstdint>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Whether the two have the same ranks, in any order, and at least one.
bool HaveSameRanks(const ModuleConfig& a, const ModuleConfig& b);

/// Whether `module` is an encoder that shares its ranks with a module that it feeds.
bool IsColocatedEncoder(const Config& config, const ModuleConfig& module);

/// Why what only a colocated encoder can do has no effect on `module`: "shares no ranks with
/// \"language\", which it feeds"; empty where it has.
std::string WhyNotColocated(const Config& config, const ModuleConfig& module);

/// Whether the edge allows its source to share the ranks of its destination: it feeds and is fed by
/// no other module.
bool MayColocate(const Config& config, const EdgeConfig& edge);

/// Whether the dp of both divide `num_ranks`, so that some layouts fit on as many.
bool FitsOn(std::int64_t num_ranks, const ModuleConfig& a, const ModuleConfig& b);

/// How the ends of an edge could share ranks, at least as many as each has: "dp 3 and dp 2 on the
/// same ranks need a multiple of 6 ranks: e.g. 6 ranks, vision tp 2 dp 3, language pp 3 dp 2".
std::string ColocatingHint(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
