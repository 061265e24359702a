// Sums of floats in vector registers.
#pragma once

#include <cstdint>

namespace troupe {

/// Sum over i of f(i), in eight interleaved lanes that the compiler can keep in vector registers.
/// It may not reorder a plain sum of floats by itself.
template <class T, class F>
T SumLanes(std::int64_t count, F f) {
  constexpr std::int64_t kLanes = 8;
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += f(i);
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  return sum;
}

}  // namespace troupe
