// What a configuration exercises, found out from the configuration itself and from the samples it
// reads, so that the matrix cannot claim more than it has.
#pragma once

#include <set>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// "encoder tp 2", "fan 3 to 2", "replica without images", ... of the first `steps` training steps.
std::set<std::string> FeaturesOf(const Config& config, std::int64_t steps);

}  // namespace troupe
