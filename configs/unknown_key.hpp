// What to say about a key that does not belong where it stands.
#pragma once

#include <string>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Where it would belong, the nearest valid spelling, or what may stand there. `kinds` is the kind
/// of the module it stands in.
std::string UnknownText(const TomlEntry& entry, std::string_view table, KindSet kinds);

}  // namespace troupe
