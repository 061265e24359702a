// bfloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe {

/// 1 sign, 8 exponent and 7 fraction bits. A storage format; arithmetic uses float.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even, as devices and libtorch do. A NaN stays a NaN.
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool nan = (word & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = word + 0x7fffU + ((word >> 16U) & 1U);
    bits = static_cast<std::uint16_t>(nan ? 0x7fc0U : rounded >> 16U);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
};

}  // namespace troupe
