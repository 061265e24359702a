// A TOML file -> Config, or everything that is wrong with it at once.
//
//   ReadFiles      the file and what it extends, merged key by key; then each --set on top
//   ReadTree       every key by the schema: unknown, missing, of the wrong type, out of range
//   FillNodes      the nodes where the file says how many, or nothing
//   FillDefaults   what follows from other keys where nobody writes it; SettleBatch likewise
//   CheckConfig    what must hold between keys
//
// Files of samples are not opened: `troupe train` and `troupe verify` do that.
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
  std::vector<ConfigError> remarks = {};  ///< of keys that have no effect: worth a warning
};

/// Loads the file at `path` with `overrides` (`KEY=VALUE`) on top, in order.
/// Throws ConfigErrors with all mistakes.
LoadedConfig LoadConfig(const std::string& path, const std::vector<std::string>& overrides = {});

/// All values as one TOML file, defaults included. Loading it gives an equal Config.
std::string ResolvedToml(const Config& config);

/// One line for each value under the dotted `key` (a key or a table), and below it where it was
/// written and what it overrode; of a single key also what it means. Of keys without a value: that
/// they are not set, their default, what may stand there and what it means. Throws
/// std::invalid_argument for what is no key here.
std::string Explain(const LoadedConfig& loaded, const std::string& key);

}  // namespace troupe
