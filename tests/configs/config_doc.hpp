// docs/config.md and docs/mistakes.md as the loader's own schema and the broken files make them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// A file as text; throws std::runtime_error with its name when it cannot be read.
std::string TextOf(const std::filesystem::path& path);

/// tests/configs/broken/*.toml, by number.
std::vector<std::filesystem::path> BrokenFiles();

/// What LoadConfig says about `path`, with a line end; "" when it says nothing.
std::string MessagesOf(const std::filesystem::path& path);

/// A page of the documentation, and its text with what is between its marker lines replaced by what
/// holds now.
struct Page {
  std::string path;
  std::function<std::string(const std::string& text)> refreshed;
};
std::vector<Page> Pages();

}  // namespace troupe
