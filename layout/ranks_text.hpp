#pragma once

#include <span>
#include <string>

namespace troupe {

/// "4-7", "0-2,5": the shortest text that ParseRanks (configs/rank_list.hpp) parses to `ranks`.
std::string RanksText(std::span<const int> ranks);

/// "8 ranks on 2 cores".
std::string RanksOnCores(int ranks, int cores);

}  // namespace troupe
