#include "configs/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

TextFile ReadTextFile(const std::string& path, std::size_t max_bytes,
                      const std::string& too_large) {
  std::error_code code;
  if (fs::is_directory(path, code)) return {{}, "expected a file, got a directory"};
  // Opening a pipe would wait for somebody to write into it.
  if (fs::exists(path, code) && !fs::is_regular_file(path, code)) {
    return {{}, "expected a file, got something that is none"};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return {{}, std::string("cannot be read: ") + std::strerror(errno)};
  std::string text(max_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return {{}, std::string("cannot be read: ") + std::strerror(errno)};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > max_bytes) return {{}, too_large};
  return {std::move(text), {}};
}

}  // namespace troupe
