// Parses text into a TomlValue. Only toml_parse.cpp includes the TOML parser.
#pragma once

#include <string>
#include <variant>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Returns the document in `text`, or its syntax error. `file` is the name used in places.
std::variant<TomlValue, ConfigError> ParseToml(const std::string& text, const std::string& file);

}  // namespace troupe
