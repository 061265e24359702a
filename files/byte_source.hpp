// Where the bytes of a file come from: the disk of this machine, or another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// A file open for reading. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// When it was opened.
  virtual std::uint64_t size() const = 0;
  /// Fills [data, data + count) from byte `offset` on. Throws std::runtime_error, one line that names
  /// the file: it fails, or has shrunk since it was opened.
  virtual void Read(std::uint64_t offset, void* data, std::size_t count) const = 0;
};

/// Opens a regular file of this machine. Throws std::runtime_error, one line that names it.
std::shared_ptr<const ByteSource> OpenFile(const std::string& path);

/// Opens a file, by its path, in another process of the job; null: none has it. Throws
/// std::runtime_error if one cannot be asked.
using OpenElsewhere = std::function<std::shared_ptr<const ByteSource>(const std::string& path)>;

}  // namespace troupe
