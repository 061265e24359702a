// The order in which a stage ran its passes, as text, for comparing schedules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/pass_record.hpp"

namespace troupe {

/// The passes of one stage that one device ran in one round.
struct PassOrder {
  std::int32_t stage = 0;
  std::int32_t dp = 0;
  std::int32_t rank = 0;
  std::string text;  ///< "F0 F1 B0 F2 B1 B2"
  friend bool operator==(const PassOrder&, const PassOrder&) = default;
};

/// The forwards, backwards and weight passes of `round` by begin time (equal times keep the given
/// order), one entry per stage, replica and rank, in that order. Units count from the smallest one
/// that any device of the stage ran in the round, so every round of a schedule has the same text.
std::vector<PassOrder> PassOrders(std::span<const PassRecord> records, std::int64_t round);

}  // namespace troupe
