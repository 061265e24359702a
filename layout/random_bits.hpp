// Random numbers that are the same with every compiler and standard library, unlike the
// distributions of <random>.
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

/// A stream of numbers. Mix keys (MixBits) that may be neighbours.
class RandomBits {
 public:
  explicit constexpr RandomBits(std::uint64_t key) : state_(key) {}
  constexpr std::uint64_t Next() { return MixBits(state_ += kMixStep); }
  /// In [low, high]; the bias of the remainder is below 2^-40 for ranges below 2^24.
  constexpr int Between(int low, int high) {
    return low + static_cast<int>(Next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

}  // namespace troupe
