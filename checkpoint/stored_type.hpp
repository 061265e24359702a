// The number types of safetensors files, and the types into which they are loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

enum class StoredType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
};

/// The name in files: "F32", "BF16", "BOOL".
std::string ToString(StoredType type);
/// The reverse; nothing for an unknown name.
std::optional<StoredType> ParseStoredType(const std::string& word);
std::size_t SizeOf(StoredType type);  ///< bytes of one element

/// The stored type of a buffer: the same type.
StoredType StoredTypeOf(DType dtype);
/// The narrowest type of a Buffer that can hold every value: F16 and BF16 become float32, I16 and
/// I8 int32, BOOL uint8.
DType LoadedTypeOf(StoredType type);

/// Converts `count` elements at `stored` (any alignment) to LoadedTypeOf(type) at `loaded`,
/// exactly. The two do not overlap.
void Widen(StoredType type, const std::byte* stored, std::size_t count, std::byte* loaded);

/// Whether the type holds numbers with a fraction.
bool IsFloating(StoredType type);
/// Converts `count` elements of one floating type to another, rounded to the nearest, ties to even,
/// where that is narrower; to F16 and BF16 by way of float32. `stored` and `target` have any
/// alignment and do not overlap. Throws std::invalid_argument for other types.
void ConvertFloats(StoredType from, const std::byte* stored, std::size_t count, StoredType to,
                   std::byte* target);

}  // namespace troupe
