// Reads a whole file that a user named.
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

struct TextFile {
  std::string text;
  std::string failure;  ///< empty if the file was read
};

/// Reads `path`, at most `max_bytes` of it. Fails for a directory, a pipe and a larger file; the
/// failure of the last is `too_large`.
TextFile ReadTextFile(const std::string& path, std::size_t max_bytes, const std::string& too_large);

/// No whole file should be larger. Larger files are refused early.
inline constexpr std::size_t kMaxWholeFile = std::size_t{64} << 20U;

/// Like `ReadTextFile`, for callers that do not handle the failure: throws std::runtime_error with
/// `path` and the reason.
std::string ReadWholeFile(const std::string& path, std::size_t max_bytes = kMaxWholeFile);

}  // namespace troupe
