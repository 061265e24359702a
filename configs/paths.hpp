// Resolves paths in a configuration, with one rule for all but run.dir: a relative path starts at
// the file that states it, and in a --set at the working directory. docs/config.md documents the
// rule.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

struct KeySpec;
struct LoadedConfig;

/// Returns `value`, stated at `stated`, with its path as it is opened from the working directory:
/// relative if it lies below that, else absolute. Texts without a path stay as they are.
std::string Located(ValueType form, const std::string& value, const Place& stated);

/// Returns `value` with its path valid in any working directory.
std::string Absolute(ValueType form, const std::string& value);

/// Returns whether the key's value is or contains a path. Such values differ between machines.
bool HoldsPath(const KeySpec& key);

/// A file of [data] that does not exist or cannot be accessed.
struct MissingFile {
  std::string key;
  std::string looked_for;  ///< absolute
  std::string reason;      ///< "no such file"
};
std::vector<MissingFile> MissingDataFiles(const Config& config);

/// Throws ConfigErrors if files of [data] are missing: for each its key, the path as written, and
/// the path that was tried.
void RequireDataFiles(const LoadedConfig& loaded);

}  // namespace troupe
