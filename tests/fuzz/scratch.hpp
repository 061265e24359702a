// Puts a fuzzer's input where a parser expects a file.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

namespace troupe::fuzz {

using Bytes = std::span<const std::uint8_t>;

inline std::string AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A folder in memory where there is one, removed at exit.
class Scratch {
 public:
  Scratch() {
    const bool shm = std::filesystem::is_directory("/dev/shm");
    std::string name = std::string(shm ? "/dev/shm" : "/tmp") + "/troupe-fuzz-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("fuzz: cannot make a folder");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

  /// Replaces the file `name` in the folder. Returns its path.
  std::string Write(const std::string& name, Bytes content) const {
    const std::string path = path_ + "/" + name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return path;
  }

 private:
  std::string path_;
};

inline const Scratch& TheScratch() {
  static const Scratch scratch;
  return scratch;
}

/// A property that an input has broken.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace troupe::fuzz
