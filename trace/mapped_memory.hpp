// Memory backed by a file: a write is in the file at once, even if the process is killed right
// after it. Survives the truncation of the file by another program: lost pages become ordinary
// memory.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace troupe {

class MappedMemory {
 public:
  /// Creates or replaces `path` with `size` zero bytes and reserves them on the disk, so that
  /// no later write can fail. An empty path means memory without a file. Throws std::runtime_error
  /// naming path and reason.
  MappedMemory(const std::string& path, std::size_t size);
  /// Maps a file for reading; later writes by other processes are visible. Throws likewise.
  static MappedMemory Open(const std::string& path);
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&&) = delete;
  ~MappedMemory();

  /// Whether pages of this mapping could not be read and have become zeros.
  bool lost() const;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  MappedMemory() = default;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Whether any pages that this process writes have become ordinary memory since it began.
/// Thread-safe.
bool AnyPagesLost();

}  // namespace troupe
