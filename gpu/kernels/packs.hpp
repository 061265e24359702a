// Neighbouring elements that a thread of device code handles at once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/kernels/device.hpp"
#include "gpu/kernels/stored.hpp"

namespace troupe::gpu {

/// Neighbouring elements, loaded and stored as one.
template <class Kind, int kCount>
struct alignas(sizeof(typename Kind::Stored) * kCount) Pack {
  typename Kind::Stored stored[kCount];
};

/// The floats of pack `i`. A pack of several elements is aligned to 16 bytes.
template <int kCount>
struct Floats {
  float values[kCount];

  __device__ Floats(const float* all, std::int64_t i) {
    if constexpr (kCount == 1) {
      values[0] = all[i];
    } else {
      for (int part = 0; part < kCount / 4; ++part) {
        const float4 four = reinterpret_cast<const float4*>(all)[i * (kCount / 4) + part];
        values[4 * part] = four.x;
        values[4 * part + 1] = four.y;
        values[4 * part + 2] = four.z;
        values[4 * part + 3] = four.w;
      }
    }
  }
};

/// Calls `run(Kind(), std::integral_constant<int, count>())` with 16 bytes per pack if alignment
/// allows. `width` is the bitwise or of numbers of elements, `places` of addresses.
template <class Run>
void WithPacks(Row row, std::int64_t width, std::uintptr_t places, const Run& run) {
  constexpr int kBytes = 16;
  const bool aligned = places % kBytes == 0;
  if (row == Row::kFloat32) {
    using Kind = Plain<float>;
    if (aligned && width % 4 == 0) return run(Kind(), std::integral_constant<int, 4>());
    return run(Kind(), std::integral_constant<int, 1>());
  }
  if (aligned && width % 8 == 0) return run(Rounded(), std::integral_constant<int, 8>());
  run(Rounded(), std::integral_constant<int, 1>());
}

inline std::uintptr_t PlaceOf(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace troupe::gpu
