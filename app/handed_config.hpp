// The configuration that a verb names, and how a launcher hands it to its children: as resolved
// text in memory that they inherit. Children do not read the user's file, so all processes of the
// launcher have the configuration that it has loaded and checked.
#pragma once

#include <string>
#include <vector>

#include "configs/loader.hpp"
#include "transport/descriptor.hpp"

namespace troupe {

/// The arguments of every verb that reads a configuration.
struct ConfigArguments {
  std::string path;
  std::vector<std::string> overrides;  ///< "key=value"
  std::string text = {};               ///< what to load, if not the file; `path` names it then
};

/// Returns memory that holds `resolved_toml`, for any number of children to inherit and to read
/// with LoadConfigOf. It is released however the processes end. Throws std::runtime_error if the
/// system has no memory or no descriptor left.
Descriptor HandedConfig(const std::string& resolved_toml);

/// Loads the file or text of `arguments`; in a child (`descriptor` >= 0) the text of a HandedConfig,
/// without origins and remarks, which its launcher has reported. Closes `descriptor`. Throws
/// ConfigErrors; those of a child name the user's file, but no line of it.
LoadedConfig LoadConfigOf(const ConfigArguments& arguments, int descriptor);

}  // namespace troupe
