// Durations for tests, the same on every machine.
#pragma once

#include <cstdint>

#include "layout/mix_bits.hpp"

namespace troupe {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(MixBits(seed)) {}
  /// A number in [0, limit).
  std::int64_t Below(std::int64_t limit) {
    return static_cast<std::int64_t>(MixBits(state_++) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_;
};

}  // namespace troupe
