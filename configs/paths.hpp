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

/// Returns `path`, stated at `stated`, as it is opened from the working directory: relative if it
/// lies below that, else absolute. Empty stays empty.
std::string Located(const std::string& path, const Place& stated);

/// Returns the same path, valid in any working directory.
std::string AbsolutePath(const std::string& path);

/// Like the two above, for a value of `data.tokenizer`: the file follows "sentencepiece:".
std::string LocatedTokenizer(const std::string& tokenizer, const Place& stated);
std::string AbsoluteTokenizer(const std::string& tokenizer);

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
