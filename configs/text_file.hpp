// Reading a whole file that a user named.
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

struct TextFile {
  std::string text;
  std::string failure;  ///< empty when the file was read
};

/// All of `path`, at most `max_bytes` of it; a directory, a pipe and a larger file are failures,
/// the last with the text `too_large`.
TextFile ReadTextFile(const std::string& path, std::size_t max_bytes, const std::string& too_large);

/// More than any file that is read whole should be: one that is must be refused in no time.
inline constexpr std::size_t kMaxWholeFile = std::size_t{64} << 20U;

/// The same for what has no other use for the reason: throws std::runtime_error naming `path` and
/// why it cannot be read, or what was expected of it.
std::string ReadWholeFile(const std::string& path, std::size_t max_bytes = kMaxWholeFile);

}  // namespace troupe
