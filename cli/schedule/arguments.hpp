// What --kinds, --kind and --microbatches say, in words that the rest of the program understands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The kinds in the values of `flag`, each of which may list several with commas between. Reads
/// files as far as to know that they can be read. Throws LaunchError naming the flag and the text:
/// a kind that there is none of, "interleaved:0", an empty place, a file that cannot be read.
std::vector<std::string> KindsOf(const std::string& flag, const std::vector<std::string>& values);

/// Numbers of microbatches, in the same way.
std::vector<std::int64_t> CountsOf(const std::string& flag, const std::vector<std::string>& values);

/// "1f1b", "gpipe", "zb-h1", "interleaved", "interleaved:4", "csv:FILE" as the overrides of the
/// configuration that say the same. Throws LaunchError, as KindsOf with `flag`.
std::vector<std::string> OverridesOf(const std::string& kind, const std::string& flag = "--kinds");

}  // namespace troupe
