// What a configuration may say and what has no effect as the rest of it stands.
#pragma once

#include <vector>

#include "configs/config.hpp"
#include "configs/config_error.hpp"
#include "configs/read_tree.hpp"

namespace troupe {

/// One for each such key, at its place.
std::vector<ConfigError> Remarks(const Config& config, const Origins& origins);

}  // namespace troupe
