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

}  // namespace troupe
