// Memory that lives in a file: what is written there is in the file at once, also when the process
// is killed the next moment.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace troupe {

class MappedMemory {
 public:
  /// Creates or replaces `path` with `size` zero bytes, all of them reserved on the disk, so that
  /// no write can fail later. An empty path: memory without a file. Throws std::runtime_error
  /// naming path and reason.
  MappedMemory(const std::string& path, std::size_t size);
  /// What is in a file, to be read only: sees what others write there meanwhile. Throws likewise.
  static MappedMemory Open(const std::string& path);
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&&) = delete;
  ~MappedMemory();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  MappedMemory() = default;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace troupe
