// Which kind of module a table describes whose `kind` is missing or wrong.
#pragma once

#include <optional>

#include "configs/config.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// What its `kind` says in other words or misspelt, else the one kind whose own keys it has.
/// Nothing when it has none, or keys of several.
std::optional<ModuleKind> LikelyKind(const TomlValue& module);

}  // namespace troupe
