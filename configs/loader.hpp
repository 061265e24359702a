// Loads a TOML file into a Config, or reports all of its errors at once.
//
//   ReadFiles      the file and the files it extends, merged key by key; then each --set on top
//   ReadTree       every key by the schema: unknown, missing, of the wrong type, out of range
//   FillNodes      the nodes, if the file has a count or none
//   FillDefaults   values of unset keys that follow from other keys; SettleBatch likewise
//   CheckConfig    relations between keys
//
// Does not open files of samples: `troupe train` and `troupe verify` do.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/config_error.hpp"
#include "configs/read_tree.hpp"

namespace troupe {

struct LoadedConfig {
  Config config;
  Origins origins;            ///< of every key in resolved_toml and every key that was written
  std::string resolved_toml;  ///< ResolvedToml(config)
  std::vector<ConfigError> remarks = {};  ///< for keys that have no effect: printed as warnings
};

/// Loads the file at `path` with `overrides` (`KEY=VALUE`) on top, in order.
/// Throws ConfigErrors with all mistakes.
LoadedConfig LoadConfig(const std::string& path, const std::vector<std::string>& overrides = {});

/// Returns all values as one TOML file, defaults included. Loading it gives an equal Config.
std::string ResolvedToml(const Config& config);

/// Returns one line for each value under the dotted `key` (a key or a table). Below each value are
/// its place and the values that it overrode; for a single key also its meaning. For keys without a
/// value: that they are not set, their default, their legal values and their meaning. Throws
/// std::invalid_argument if `key` is not a key of this configuration.
std::string Explain(const LoadedConfig& loaded, const std::string& key);

}  // namespace troupe
