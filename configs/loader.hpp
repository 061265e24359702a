// Loads a TOML file into a Config, or reports all of its errors at once. configs/steps.hpp has the
// steps.
//
// Does not open files of samples: `troupe train` and `troupe verify` do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/report.hpp"
#include "configs/toml_value.hpp"
#include "models/image_processor.hpp"

namespace troupe {

/// The origin of a key's value.
struct Origin {
  Place place;                     ///< file empty: not written, the value is the default
  std::string value;               ///< as TOML
  std::string written = {};        ///< as the user wrote it; empty for a default
  std::vector<Replaced> replaced;  ///< values that it overrode, oldest first
};

/// By dotted key: "modules.vision.layout.dp", "edges.vision.language.credits".
using Origins = std::map<std::string, Origin>;

/// The configuration of a folder that a module or projector starts from.
struct ReadFolder {
  std::string part;  ///< the module, or the dotted key of the projector
  std::string path;
  std::vector<DefaultedKey> defaulted;
  FolderImages images;
};

struct LoadedConfig {
  Config config;
  Origins origins;            ///< of every key in resolved_toml and every key that was written
  std::string resolved_toml;  ///< ResolvedToml(config)
  std::vector<ReadFolder> folders = {};   ///< of modules, then of projectors
  std::vector<ConfigError> remarks = {};  ///< for keys that have no effect: printed as warnings
};

/// Loads the file at `path` with `overrides` (`KEY=VALUE`) on top, in order.
/// Throws ConfigErrors with all mistakes.
LoadedConfig LoadConfig(const std::string& path, const std::vector<std::string>& overrides = {});

/// Returns all values as one TOML file, defaults included. Loading it gives an equal Config.
std::string ResolvedToml(const Config& config);

/// Returns one remark, at its place, for each key that has no effect given the other keys.
std::vector<ConfigError> Remarks(const Config& config, const Origins& origins);

/// Returns one line for each value under the dotted `key` (a key or a table). Below each value are
/// its place and the values that it overrode; for a single key also its meaning. For keys without a
/// value: that they are not set, their default, their legal values and their meaning. Throws
/// std::invalid_argument if `key` is not a key of this configuration.
std::string Explain(const LoadedConfig& loaded, const std::string& key);

}  // namespace troupe
