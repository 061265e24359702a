// Tensors by name in one file, in the safetensors format (safetensors_header.hpp has the layout).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/safetensors_header.hpp"
#include "files/output_file.hpp"
#include "files/sha256.hpp"
#include "transport/buffer.hpp"

namespace troupe {

struct NamedTensor {
  std::string name;
  Buffer value;
};

/// Writes `tensors` to `path`, atomically (ReplaceFile): the file is the old one or the new one,
/// never a part. Tensors lie widest element first, then by name, so that each is aligned and the
/// same tensors give the same bytes. `metadata` is added to {"format": "pt"}. `sum`, unless null,
/// is given every byte of the file.
/// Throws std::runtime_error, naming the path: a name used twice or reserved or not UTF-8, a tensor
/// without value, a disk that is full or fails.
void WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const Metadata& metadata = {}, Sha256* sum = nullptr);

/// The same into a file that is open; errors about the tensors do not name it.
void WriteSafetensors(OutputFile& file, const std::vector<NamedTensor>& tensors,
                      const Metadata& metadata = {});

/// A file that is open for reading. The header was checked as a whole; Read may be called on any
/// thread.
class SafetensorsReader {
 public:
  /// Throws std::runtime_error, one line: the path, what was expected and what is there. Reserves
  /// no memory on the word of the file.
  explicit SafetensorsReader(std::string path);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return header_.metadata; }
  /// In the order of their bytes.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  /// Null when there is no such tensor.
  const TensorEntry* Find(const std::string& name) const;

  /// A copy in memory of its own, in LoadedTypeOf the stored type. Throws std::runtime_error naming
  /// the path: an unknown name, or a file that fails or has shrunk since it was opened.
  Buffer Read(const std::string& name) const;

  /// Reads the whole file once, its header again included: gives every byte to `sum` and every
  /// tensor, in the order of their bytes, to `take`. Throws as Read does, and what `take` throws.
  void ReadAll(Sha256& sum, const std::function<void(const TensorEntry&, Buffer)>& take) const;

 private:
  void ReadHeader();
  /// `sum`, unless null, is given the bytes as they are stored.
  Buffer ReadEntry(const TensorEntry& entry, Sha256* sum) const;
  /// Fills [data, data + count) from byte `offset` of the file on.
  void ReadAt(std::uint64_t offset, void* data, std::size_t count) const;

  std::string path_;
  int file_ = -1;
  std::uint64_t data_begin_ = 0;  ///< byte of the file where the offsets count from
  SafetensorsHeader header_;
};

}  // namespace troupe
