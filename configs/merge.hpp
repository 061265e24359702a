// Merges a file with the files it extends.
#pragma once

#include <vector>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Merges `over` into `base`, key by key. Values of `over` win and keep the values that they
/// replace. Lists are replaced, [[edges]] merge by (from, to), `layout = {}` replaces the whole
/// table. A module given inline_in loses its inherited ranks and layout, and vice versa; likewise
/// schedule.global_batch and microbatches.
void Merge(TomlValue& base, TomlValue over);

/// Reports edges that one file has twice, which merging would hide.
std::vector<ConfigError> RepeatedEdges(const TomlValue& file);

/// Returns "vision.language" for an edge with `from` and `to`, "" if one of them is not a string.
std::string EdgeName(const TomlValue& edge);

}  // namespace troupe
