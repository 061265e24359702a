// Which inputs of an adapter are dropped (configs/config.hpp, LoraConfig). It follows from the seed,
// the step, the sample, the row, the layer and the feature: the same in every layout, and when a
// run goes on after a checkpoint.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// The part of the decision that all features of a row have in common. `step` counts from 0;
/// `sample` is the place in the global batch, `row` that among the rows of the sample which enter
/// the module's layers, class tokens included.
std::uint32_t DropoutRow(std::uint64_t seed, std::int64_t step, std::int64_t sample,
                         std::int64_t row);
/// The part that all rows have in common. `adapter` is the name of its first weight; `feature` is
/// counted over all ranks.
std::uint32_t DropoutFeature(std::string_view adapter, std::int64_t feature);

/// What a number must be below to be dropped, of a `share` in [0, 1).
constexpr std::uint32_t DropoutLimit(double share) {
  return static_cast<std::uint32_t>(share * 4294967296.0);
}

/// Whether the input of these two is dropped.
constexpr bool IsDropped(std::uint32_t row, std::uint32_t feature, double share) {
  std::uint32_t x = row ^ feature;  // the finaliser of MurmurHash3
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  x ^= x >> 16;
  return x < DropoutLimit(share);
}

}  // namespace troupe
