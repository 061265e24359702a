// A directory of its own for one test, removed at its end.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace troupe {

class TemporaryDirectory {
 public:
  /// In the folder for temporary files, or in `base` if that exists: a file system in memory is faster.
  explicit TemporaryDirectory(const std::string& base = "") {
    static int count = 0;
    const bool there = std::filesystem::is_directory(base);
    path_ = (there ? std::filesystem::path(base) : std::filesystem::temp_directory_path()) /
            ("troupe_checkpoint_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directory(path_);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string File(const std::string& name) const { return (path_ / name).string(); }

  /// Files in it.
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace troupe
