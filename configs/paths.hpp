// One rule for every path in a configuration but run.dir: a relative one starts at the file that
// states it, one in a --set at the working directory. docs/config.md says so to users.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

struct KeySpec;
struct LoadedConfig;

/// `path` as it is opened from the working directory, by where it is stated: relative if it lies
/// below that, else absolute. Empty stays empty.
std::string Located(const std::string& path, const Place& stated);

/// The same in any working directory.
std::string AbsolutePath(const std::string& path);

/// The two above for a value of `data.tokenizer`, whose file stands behind "sentencepiece:".
std::string LocatedTokenizer(const std::string& tokenizer, const Place& stated);
std::string AbsoluteTokenizer(const std::string& tokenizer);

/// Whether the key's value is a path, or holds one: what differs between machines.
bool HoldsPath(const KeySpec& key);

/// A file of [data] that is not there, or that the system does not let us see.
struct MissingFile {
  std::string key;
  std::string looked_for;  ///< absolute
  std::string reason;      ///< "no such file"
};
std::vector<MissingFile> MissingDataFiles(const Config& config);

/// Throws ConfigErrors with each of them: its key, the path as written, and where it was looked
/// for.
void RequireDataFiles(const LoadedConfig& loaded);

}  // namespace troupe
