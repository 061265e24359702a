// Finds keys of a configuration that have no effect, given its other keys.
#pragma once

#include <vector>

#include "configs/config.hpp"
#include "configs/config_error.hpp"
#include "configs/read_tree.hpp"

namespace troupe {

/// Returns one remark for each such key, at its place.
std::vector<ConfigError> Remarks(const Config& config, const Origins& origins);

}  // namespace troupe
