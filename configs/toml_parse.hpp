// Text -> TomlValue. The only place that knows the TOML parser.
#pragma once

#include <string>
#include <variant>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The document in `text`, or what is wrong with its syntax. `file` is the name used in places.
std::variant<TomlValue, ConfigError> ParseToml(const std::string& text, const std::string& file);

}  // namespace troupe
