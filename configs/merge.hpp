// How a file lies on the files it extends.
#pragma once

#include <vector>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Lays `over` on `base`, key by key; `over` wins and remembers what it replaced. Lists replace,
/// [[edges]] merge by (from, to), `layout = {}` replaces as a whole. A module given inline_in loses
/// its inherited ranks and layout, and the other way round; so do schedule.global_batch and
/// microbatches.
void Merge(TomlValue& base, TomlValue over);

/// Edges written twice in one file, which merging would hide.
std::vector<ConfigError> RepeatedEdges(const TomlValue& file);

/// "vision.language" of an edge with `from` and `to`, "" when one of them is no string.
std::string EdgeName(const TomlValue& edge);

}  // namespace troupe
