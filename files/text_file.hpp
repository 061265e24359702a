// Reads files that a user named.
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

/// Returns the reason why a program must not open `path` to read it, or "": "no such file". Opening
/// a pipe would block until another process writes into it, and a device may have no end.
std::string WhyNotOpened(const std::string& path);

struct TextFile {
  std::string text;
  std::string failure;  ///< empty if the file was read
};

/// Reads `path`, at most `max_bytes` of it. The failure of a larger file is `too_large`.
TextFile ReadTextFile(const std::string& path, std::size_t max_bytes, const std::string& too_large);

/// No whole file should be larger. Larger files are refused early.
inline constexpr std::size_t kMaxWholeFile = std::size_t{64} << 20U;

/// Like `ReadTextFile`, for callers that do not handle the failure: throws std::runtime_error with
/// `path` and the reason.
std::string ReadWholeFile(const std::string& path, std::size_t max_bytes = kMaxWholeFile);

}  // namespace troupe
