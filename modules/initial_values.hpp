// Initial values by name and global index: every layout starts from the same numbers, because no
// element depends on which rank makes it or in which order.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "layout/mix_bits.hpp"

namespace troupe {

/// The stream of one parameter of one run.
constexpr std::uint64_t ParameterKey(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 1469598103934665603ull;
  for (const unsigned char c : name) hash = (hash ^ c) * 1099511628211ull;
  return MixBits(seed ^ MixBits(hash));
}

/// Element `global_index` of the stream `key`: standard normal (Box-Muller in double, rounded
/// once).
inline float NormalAt(std::uint64_t key, std::uint64_t global_index) {
  const std::uint64_t r = MixBits(key + global_index * kMixStep);
  const double u = (static_cast<double>(r >> 32) + 0.5) * 0x1p-32;
  const double v = static_cast<double>(r & 0xffffffffu) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
}

}  // namespace troupe
