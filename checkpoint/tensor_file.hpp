// Tensors by name in a file of any format: where the bytes of each are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/stored_type.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The type, shape and position of a tensor in its file.
struct TensorEntry {
  std::string name;
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::uint64_t begin = 0;  ///< bytes, in a TensorFile from its beginning
  std::uint64_t end = 0;
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

/// A file whose header has been read and checked: all entries are within the file.
struct TensorFile {
  std::string path;
  std::vector<TensorEntry> entries;  ///< in the order of their bytes
};

/// Null if there is no such tensor.
const TensorEntry* FindEntry(const std::vector<TensorEntry>& entries, const std::string& name);

/// Sorts entries by their bytes.
void SortByPlace(std::vector<TensorEntry>& entries);

/// `tensor "NAME"`, for messages.
std::string TensorTitle(const std::string& name);

/// Returns the bytes of a contiguous tensor of the entry's type and shape, whose sizes are not
/// negative. Throws std::runtime_error, one line, for 2^63 bytes and more.
std::uint64_t CheckedBytes(const TensorEntry& entry);

}  // namespace troupe
