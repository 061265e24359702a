// A hash of 64 bits that is the same with every compiler and standard library, unlike std::hash and
// the distributions of <random>.
#pragma once

#include <cstdint>

namespace troupe {

/// The step between the states of SplitMix64: 2^64 over the golden ratio, odd.
inline constexpr std::uint64_t kMixStep = 0x9e3779b97f4a7c15ULL;

/// A bijection of 64-bit numbers that decorrelates neighbouring values.
///   source   SplitMix64's finaliser (Steele, Lea and Flood, 2014)
constexpr std::uint64_t MixBits(std::uint64_t x) {
  x += kMixStep;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace troupe
