// The files of a source: "shards/{000..999}.tar", "part-*.jsonl" or one path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A file as it was when the job started.
struct Shard {
  std::string path;
  std::int64_t size = 0;  ///< bytes
  std::int64_t modified_ns = 0;
  std::uint64_t inode = 0;
};

/// Returns the paths that `pattern` stands for: each {a,b} and {000..999} in the order in which it is
/// written, and each *, ? and [...] as in a shell, sorted. A pattern without them is one path. Throws
/// std::runtime_error, the reason as one line, for braces that do not match, for a range of more than a
/// million, and where no file matches.
std::vector<std::string> ExpandPaths(const std::string& pattern);

/// Looks at a file. Throws std::runtime_error, the reason as one line, if it cannot be read.
Shard LookAt(const std::string& path);

}  // namespace troupe
