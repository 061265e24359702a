// The order in which rows are drawn, without a shuffled list. Any process can compute any place of
// it, so the order is neither stored in a checkpoint nor sent between processes.
#pragma once

#include <cstdint>

namespace troupe {

/// Most places of an order that are looked at together.
inline constexpr std::int64_t kOrderWindow = std::int64_t{1} << 18;

/// Returns the row at place `index` of epoch `epoch`: for every (seed, epoch, size) a bijection of
/// [0, size). Throws std::invalid_argument for an index outside [0, size).
///   source   a keyed Feistel network over the next power of four, cycle walking
///            (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002)
std::int64_t SampleOrder(std::uint64_t seed, std::int64_t epoch, std::int64_t index,
                         std::int64_t size);

}  // namespace troupe
