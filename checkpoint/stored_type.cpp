#include "checkpoint/stored_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <type_traits>

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

  Float16() = default;
  explicit Float16(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(whole >> 16 & 0x8000U);
    const std::uint32_t magnitude = whole & 0x7FFFFFFFU;
    bits = static_cast<std::uint16_t>(sign | MagnitudeOf(magnitude));
  }
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

 private:
  /// Of the bits of a positive float32.
  static std::uint32_t MagnitudeOf(std::uint32_t magnitude) {
    if (magnitude > 0x7F800000U) return 0x7E00U | (magnitude >> 13 & 0x3FFU);  // NaN stays one
    if (magnitude >= 0x477FF000U) return 0x7C00U;                              // rounds to infinity
    if (magnitude < 0x38800000U) {  // subnormal: the addition rounds to multiples of 2^-24
      return std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    }
    const std::uint32_t odd = magnitude >> 13 & 1U;
    return (magnitude - 0x38000000U + 0xFFFU + odd) >> 13;
  }
};

template <class Stored, class Loaded>
void Convert(const std::byte* stored, std::size_t count, std::byte* loaded) {
  for (std::size_t i = 0; i < count; ++i) {
    Stored from;
    std::memcpy(&from, stored + i * sizeof(from), sizeof(from));
    const auto to = static_cast<Loaded>(from);  // NOLINT(bugprone-signed-char-misuse)
    std::memcpy(loaded + i * sizeof(to), &to, sizeof(to));
  }
}

/// Converts floating types. What is narrower than float32 is converted by way of it.
template <class Stored, class Target>
void ConvertFloat(const std::byte* stored, std::size_t count, std::byte* target) {
  constexpr bool kDirect = std::is_floating_point_v<Stored> && std::is_floating_point_v<Target>;
  if constexpr (std::is_same_v<Stored, Target>) {
    if (count > 0) std::memcpy(target, stored, count * sizeof(Stored));
  } else if constexpr (kDirect) {
    Convert<Stored, Target>(stored, count, target);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      Stored from;
      std::memcpy(&from, stored + i * sizeof(from), sizeof(from));
      const auto to = static_cast<Target>(static_cast<float>(from));
      std::memcpy(target + i * sizeof(to), &to, sizeof(to));
    }
  }
}

/// Calls `work` with a value of the C++ type of a floating type.
template <class Work>
void WithFloatType(StoredType type, Work work) {
  switch (type) {
    case StoredType::kFloat64:
      return work(double{});
    case StoredType::kFloat32:
      return work(float{});
    case StoredType::kFloat16:
      return work(Float16{});
    case StoredType::kBFloat16:
      return work(BFloat16{});
    default:
      throw std::invalid_argument("expected a floating type, got " + ToString(type));
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

void ConvertFloats(StoredType from, const std::byte* stored, std::size_t count, StoredType to,
                   std::byte* target) {
  WithFloatType(from, [&](auto stored_value) {
    WithFloatType(to, [&](auto target_value) {
      ConvertFloat<decltype(stored_value), decltype(target_value)>(stored, count, target);
    });
  });
}

}  // namespace troupe
