// Where a configuration comes from: a file, the files it extends, the --set arguments.
#pragma once

#include <string>
#include <vector>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The file at `path` laid on everything it extends. Files that cannot be read, syntax errors and
/// cycles are added to `errors`.
TomlValue ReadFiles(const std::string& path, std::vector<ConfigError>& errors);

/// One `KEY=VALUE` as a document of its own; all its places are the argument. A bare word is a
/// string, with every # and quote in it, and so is an empty value.
TomlValue ReadOverride(const std::string& text, std::vector<ConfigError>& errors);

}  // namespace troupe
