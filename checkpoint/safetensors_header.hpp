// The JSON header of a safetensors file: names, types, shapes and offsets of its tensors.
//
//   8 bytes   length N of the header, little-endian, at most kMaxHeaderBytes
//   N bytes   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//             "__metadata__": {"format": "pt", ...}}, padded with blanks
//   the rest  the tensors; offsets count from here, and they cover it without gap or overlap
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/stored_type.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The limit of the format.
inline constexpr std::uint64_t kMaxHeaderBytes = 100ULL << 20;

/// Free text about a file.
using Metadata = std::map<std::string, std::string>;

/// The type, shape and position of a tensor in its file.
struct TensorEntry {
  std::string name;
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::uint64_t begin = 0;  ///< bytes from the end of the header
  std::uint64_t end = 0;
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  ///< in the order of their bytes
  Metadata metadata;
};

/// Parses and checks the JSON of a header. `num_bytes` is the size of the data after it. Throws
/// std::runtime_error, one line without the file's name: the fault and its place.
SafetensorsHeader ParseHeader(const std::string& json, std::uint64_t num_bytes);

/// The JSON of a header, padded so that the data after it is aligned to 8 bytes. Throws
/// std::runtime_error for a name that is used twice, reserved or not UTF-8, and for a header that
/// is too long.
std::string FormatHeader(const SafetensorsHeader& header);

}  // namespace troupe
