// The sources of a configuration: a file, the files it extends, the --set arguments.
#pragma once

#include <string>
#include <vector>

#include "configs/config_error.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// Returns the file at `path` merged with all files that it extends. Adds unreadable files, syntax
/// errors and cycles to `errors`.
TomlValue ReadFiles(const std::string& path, std::vector<ConfigError>& errors);

/// Parses one `KEY=VALUE` as a separate document. All its places are the argument. A bare word is a
/// string, with every # and quote in it, and so is an empty value.
TomlValue ReadOverride(const std::string& text, std::vector<ConfigError>& errors);

}  // namespace troupe
