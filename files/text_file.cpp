#include "files/text_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

std::string WhyNotOpened(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::none) return "cannot be read: " + code.message();
  if (!fs::exists(status)) return "no such file";
  if (fs::is_directory(status)) return "expected a file, got a directory";
  return fs::is_regular_file(status) ? "" : "expected a regular file";
}

TextFile ReadTextFile(const std::string& path, std::size_t max_bytes,
                      const std::string& too_large) {
  if (std::string reason = WhyNotOpened(path); !reason.empty()) return {{}, std::move(reason)};
  std::ifstream file(path, std::ios::binary);
  if (!file) return {{}, std::string("cannot be read: ") + std::strerror(errno)};
  // Reads in pieces: a file may have more bytes than its reported size.
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  std::string text;
  while (file && text.size() <= max_bytes) {
    const std::size_t at = text.size();
    text.resize(std::min(at + kPiece, max_bytes + 1));
    file.read(text.data() + at, static_cast<std::streamsize>(text.size() - at));
    text.resize(at + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return {{}, std::string("cannot be read: ") + std::strerror(errno)};
  if (text.size() > max_bytes) return {{}, too_large};
  return {std::move(text), {}};
}

std::string ReadWholeFile(const std::string& path, std::size_t max_bytes) {
  TextFile file = ReadTextFile(
      path, max_bytes, "expected at most " + std::to_string(max_bytes >> 20U) + " MiB, got more");
  if (!file.failure.empty()) throw std::runtime_error(path + ": " + file.failure);
  return std::move(file.text);
}

}  // namespace troupe
