// docs/config.md as the loader's own schema and the broken files make it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A file as text; throws std::runtime_error with its name when it cannot be read.
std::string TextOf(const std::filesystem::path& path);

/// tests/configs/broken/*.toml, by number.
std::vector<std::filesystem::path> BrokenFiles();

/// What LoadConfig says about `path`, with a line end; "" when it says nothing.
std::string MessagesOf(const std::filesystem::path& path);

/// `page` with everything between the marker lines replaced by what holds now.
std::string RefreshedPage(const std::string& page);

}  // namespace troupe
