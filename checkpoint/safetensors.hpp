// Tensors by name in one file, in the safetensors format:
//   8 bytes   length N of the header, little-endian, at most kMaxHeaderBytes
//   N bytes   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//             "__metadata__": {"format": "pt", ...}}, padded with blanks
//   the rest  the tensors; offsets count from here, and they cover it without gap or overlap
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor_file.hpp"
#include "files/byte_source.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The limit of the format.
inline constexpr std::uint64_t kMaxHeaderBytes = 100ULL << 20;

/// Free text about a file.
using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  ///< in the order of their bytes, from the end of the header
  Metadata metadata;
};

/// Parses and checks the JSON of a header. `num_bytes` is the size of the data after it. Throws
/// std::runtime_error, one line without the file's name: the fault and its place.
SafetensorsHeader ParseHeader(const std::string& json, std::uint64_t num_bytes);

struct NamedTensor {
  std::string name;
  Buffer value;
};

/// Takes the bytes of a tensor, in order, in any number of calls.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// A tensor whose bytes are made when they are written.
struct TensorToWrite {
  std::string name;
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::function<void(const ByteSink& sink)> write;
};

/// The bytes of a file that has been written.
struct WrittenFile {
  std::uint64_t bytes = 0;
  std::string sha256;
  std::string header_sha256;  ///< of those before the tensors
};

/// Writes `tensors` to `path`, atomically (ReplaceFile): the file is the old one or the new one,
/// never a part. Tensors are sorted by element size, largest first, then by name, so that each is
/// aligned and the same tensors give the same bytes. `metadata` is added to {"format": "pt"}. Fills
/// in `written`, unless it is null.
/// Throws std::runtime_error, naming the path: a name used twice or reserved or not UTF-8, a tensor
/// without value or with another number of bytes, a full or failing disk. Exceptions of
/// TensorToWrite::write pass through.
void WriteTensors(const std::string& path, std::vector<TensorToWrite> tensors,
                  const Metadata& metadata = {}, WrittenFile* written = nullptr);
/// The same for tensors in memory.
void WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const Metadata& metadata = {}, WrittenFile* written = nullptr);
/// The same file in memory, [size] uint8, which `allocate` gives. `written->sha256` is that of the
/// header: sums of values would cost more time than the copy.
Buffer MakeSafetensors(const std::vector<NamedTensor>& tensors, const Metadata& metadata,
                       WrittenFile& written,
                       const std::function<Buffer(std::size_t num_bytes)>& allocate);

/// A rectangle of a tensor, and where it goes in memory: `offsets` and `shape` in the tensor of the
/// file, `to` in a tensor of shape `whole` at `data`. All have as many dimensions as the tensor.
struct PartToRead {
  std::vector<std::int64_t> offsets;
  Shape shape;
  std::vector<std::int64_t> to;
  Shape whole;
  std::byte* data = nullptr;
};

/// A file open for reading, with a checked header. Read may be called on any thread.
class SafetensorsReader {
 public:
  /// Throws std::runtime_error, one line: path, expected and actual value. Never allocates by sizes
  /// that only the file states.
  explicit SafetensorsReader(const std::string& path) : SafetensorsReader(path, OpenFile(path)) {}
  /// The same of a file that `bytes` gives; `path` names it.
  SafetensorsReader(std::string path, std::shared_ptr<const ByteSource> bytes);
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return header_.metadata; }
  /// Bytes of the file before offset 0.
  std::uint64_t data_begin() const { return data_begin_; }
  /// The digest of these bytes.
  const std::string& header_sha256() const { return header_sha256_; }
  /// Bytes of the file that have been read so far.
  std::uint64_t bytes_read() const { return bytes_read_; }
  /// In the order of their bytes, which count from data_begin().
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  /// Null if there is no such tensor.
  const TensorEntry* Find(const std::string& name) const;

  /// A copy in LoadedTypeOf the stored type. Throws std::runtime_error naming the path: an unknown
  /// name, or a file that fails or has shrunk since it was opened.
  Buffer Read(const std::string& name) const;
  /// The same of a part, which it has. Reads no other bytes.
  Buffer ReadPart(const std::string& name, const std::vector<std::int64_t>& offsets,
                  const Shape& shape) const;
  /// Reads the bytes of a part as they are stored, and no others.
  void ReadPart(const TensorEntry& entry, const PartToRead& part) const;

 private:
  void ReadHeader();
  const TensorEntry& Entry(const std::string& name) const;
  /// Fills [data, data + count) from byte `offset` of the file on.
  void ReadAt(std::uint64_t offset, void* data, std::size_t count) const;

  std::string path_;
  std::shared_ptr<const ByteSource> bytes_;
  std::uint64_t data_begin_ = 0;  ///< position in the file of offset 0
  SafetensorsHeader header_;
  std::string header_sha256_;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

/// Reads the header alone. Throws like SafetensorsReader.
TensorFile ReadSafetensorsFile(const std::string& path);

}  // namespace troupe
