// In which order a stage ran its passes, as text: what a schedule is compared by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/pass_record.hpp"

namespace troupe {

/// What one device ran of one stage in one round.
struct PassOrder {
  std::int32_t stage = 0;
  std::int32_t dp = 0;
  std::int32_t rank = 0;
  std::string text;  ///< "F0 F1 B0 F2 B1 B2"
  friend bool operator==(const PassOrder&, const PassOrder&) = default;
};

/// The forwards, backwards and weight passes of `round` by begin time (those that begin together
/// stay as given), one entry per stage, replica and rank, in that order. Units count from the
/// smallest one that any device of the stage ran in the round, so every round of a schedule reads
/// the same.
std::vector<PassOrder> PassOrders(std::span<const PassRecord> records, std::int64_t round);

}  // namespace troupe
