#include "checkpoint/stored_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "gpu/kernels/bfloat16.hpp"

namespace troupe {
namespace {

struct TypeInfo {
  const char* word;
  std::size_t bytes;
  DType loaded;
};

/// In the order of StoredType.
constexpr std::array<TypeInfo, 10> kTypes = {{{"F64", 8, DType::kFloat64},
                                              {"F32", 4, DType::kFloat32},
                                              {"F16", 2, DType::kFloat32},
                                              {"BF16", 2, DType::kFloat32},
                                              {"I64", 8, DType::kInt64},
                                              {"I32", 4, DType::kInt32},
                                              {"I16", 2, DType::kInt32},
                                              {"I8", 1, DType::kInt32},
                                              {"U8", 1, DType::kUInt8},
                                              {"BOOL", 1, DType::kUInt8}}};

const TypeInfo& InfoOf(StoredType type) { return kTypes[static_cast<std::size_t>(type)]; }

/// IEEE 754 half precision: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
  std::uint16_t bits;

  explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    const std::uint32_t fraction = bits & 0x3FFU;
    if (exponent == 0) {
      // Zero and subnormals: fraction * 2^-24, which float32 holds exactly.
      const float value = static_cast<float>(fraction) * 0x1p-24F;
      return sign == 0 ? value : -value;
    }
    // Infinity and NaN keep an exponent of all ones; the rest moves from bias 15 to bias 127.
    const std::uint32_t widened = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
    return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
  }
};

/// By way of `Between`.
template <class Stored, class Between, class Loaded>
void ConvertBy(const std::byte* stored, std::size_t count, std::byte* loaded) {
  for (std::size_t i = 0; i < count; ++i) {
    Stored from;
    std::memcpy(&from, stored + i * sizeof(from), sizeof(from));
    const auto to = static_cast<Loaded>(static_cast<Between>(from));
    std::memcpy(loaded + i * sizeof(to), &to, sizeof(to));
  }
}

template <class Stored, class Loaded>
void Convert(const std::byte* stored, std::size_t count, std::byte* loaded) {
  for (std::size_t i = 0; i < count; ++i) {
    Stored from;
    std::memcpy(&from, stored + i * sizeof(from), sizeof(from));
    const auto to = static_cast<Loaded>(from);  // NOLINT(bugprone-signed-char-misuse)
    std::memcpy(loaded + i * sizeof(to), &to, sizeof(to));
  }
}

template <class Target>
void ConvertFloatsTo(StoredType from, const std::byte* stored, std::size_t count,
                     std::byte* target) {
  switch (from) {
    case StoredType::kFloat64:
      return Convert<double, Target>(stored, count, target);
    case StoredType::kFloat32:
      return Convert<float, Target>(stored, count, target);
    case StoredType::kFloat16:
      return ConvertBy<Float16, float, Target>(stored, count, target);
    case StoredType::kBFloat16:
      return ConvertBy<BFloat16, float, Target>(stored, count, target);
    default:
      throw std::invalid_argument("expected a floating type, got " + ToString(from));
  }
}

}  // namespace

std::string ToString(StoredType type) { return InfoOf(type).word; }

std::optional<StoredType> ParseStoredType(const std::string& word) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (word == kTypes[i].word) return static_cast<StoredType>(i);
  }
  return std::nullopt;
}

std::size_t SizeOf(StoredType type) { return InfoOf(type).bytes; }

StoredType StoredTypeOf(DType dtype) {
  if (dtype == DType::kBFloat16) return StoredType::kBFloat16;  // not loaded as itself
  const auto same = std::ranges::find_if(kTypes, [dtype](const TypeInfo& type) {
    return type.loaded == dtype && type.bytes == SizeOf(dtype);
  });
  return static_cast<StoredType>(same - kTypes.begin());
}

DType LoadedTypeOf(StoredType type) { return InfoOf(type).loaded; }

void Widen(StoredType type, const std::byte* stored, std::size_t count, std::byte* loaded) {
  switch (type) {
    case StoredType::kFloat16:
      return Convert<Float16, float>(stored, count, loaded);
    case StoredType::kBFloat16:
      return Convert<BFloat16, float>(stored, count, loaded);
    case StoredType::kInt16:
      return Convert<std::int16_t, std::int32_t>(stored, count, loaded);
    case StoredType::kInt8:
      return Convert<std::int8_t, std::int32_t>(stored, count, loaded);
    default:
      break;
  }
  if (count > 0) std::memcpy(loaded, stored, count * SizeOf(type));
}

bool IsFloating(StoredType type) {
  return type == StoredType::kFloat64 || type == StoredType::kFloat32 ||
         type == StoredType::kFloat16 || type == StoredType::kBFloat16;
}

void ConvertFloats(StoredType from, const std::byte* stored, std::size_t count, DType to,
                   std::byte* target) {
  if (to == DType::kFloat32) return ConvertFloatsTo<float>(from, stored, count, target);
  if (to == DType::kFloat64) return ConvertFloatsTo<double>(from, stored, count, target);
  throw std::invalid_argument("expected float32 or float64 as target, got " + ToString(to));
}

}  // namespace troupe
