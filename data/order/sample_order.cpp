#include "data/order/sample_order.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "layout/mix_bits.hpp"

namespace troupe {
namespace {

constexpr int kNumRounds = 8;

/// One pass of the network: a bijection of [0, 4^half_bits).
std::uint64_t Permute(std::uint64_t value, int half_bits, std::uint64_t key) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits;
  std::uint64_t right = value & mask;
  for (int round = 0; round < kNumRounds; ++round) {
    const std::uint64_t round_key = MixBits(key + static_cast<std::uint64_t>(round));
    const std::uint64_t mixed = left ^ (MixBits(round_key ^ right) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits | right;
}

}  // namespace

std::int64_t SampleOrder(std::uint64_t seed, std::int64_t epoch, std::int64_t index,
                         std::int64_t size) {
  if (index < 0 || index >= size) {
    throw std::invalid_argument("sample order: expected an index in [0, " + std::to_string(size) +
                                "), got " + std::to_string(index));
  }
  const auto limit = static_cast<std::uint64_t>(size);
  const int half_bits = (static_cast<int>(std::bit_width(limit - 1)) + 1) / 2;
  const std::uint64_t key = MixBits(MixBits(seed) ^ static_cast<std::uint64_t>(epoch));
  auto value = static_cast<std::uint64_t>(index);
  // The cycle of `index` returns to it, so it contains a value below `size`. At most 3 of 4 values
  // are not below it.
  do {
    value = Permute(value, half_bits, key);
  } while (value >= limit);
  return static_cast<std::int64_t>(value);
}

}  // namespace troupe
