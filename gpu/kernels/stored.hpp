// Element types of device code: the type in memory and the type of arithmetic.
#pragma once

#include <cstdint>

namespace troupe::gpu {

/// Memory holds Stored; arithmetic uses Value.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static __device__ Value Load(Stored stored) { return stored; }
  static __device__ Stored Round(Value value) { return value; }
};

/// bfloat16 in memory, float elsewhere.
struct Rounded {
  using Stored = std::uint16_t;
  using Value = float;
  static __device__ Value Load(Stored stored) {
    return __uint_as_float(static_cast<unsigned>(stored) << 16U);
  }
  /// Rounds like BFloat16, including its NaN.
  static __device__ Stored Round(Value value) {
    const unsigned word = __float_as_uint(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) return 0x7fc0U;
    return static_cast<Stored>((word + 0x7fffU + ((word >> 16U) & 1U)) >> 16U);
  }
};

}  // namespace troupe::gpu
