// Modules that take turns on the same ranks: which do, and how two could.
#pragma once

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

/// How the ends of an edge could share ranks: "dp 3 and dp 2 on the same ranks need a multiple of 6
/// ranks: e.g. 6 ranks, vision tp 2 dp 3, language pp 3 dp 2".
std::string ColocatingHint(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
