// Parses --kinds, --kind and --microbatches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Returns the kinds in the values of `flag`, each a list separated by commas. Checks that files
/// can be read. Throws LaunchError with the flag and the text for an unknown kind, "interleaved:0",
/// an empty item, or a file that cannot be read.
std::vector<std::string> KindsOf(const std::string& flag, const std::vector<std::string>& values);

/// Returns numbers of microbatches in the same way.
std::vector<std::int64_t> CountsOf(const std::string& flag, const std::vector<std::string>& values);

/// Returns the overrides of the configuration for a kind: "1f1b", "gpipe", "zb-h1", "interleaved",
/// "interleaved:4" or "csv:FILE". Throws LaunchError, as KindsOf with `flag`.
std::vector<std::string> OverridesOf(const std::string& kind, const std::string& flag = "--kinds");

}  // namespace troupe
