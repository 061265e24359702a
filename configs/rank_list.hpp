// Parses lists of ranks: "4-7", "0-2,5". layout/ranks_text.hpp writes them.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// Returns the ranks in `text` in the order written, or the reason why it is not a rank list. Keeps
/// repetitions: the caller checks them.
std::variant<std::vector<int>, std::string> ParseRanks(std::string_view text);

}  // namespace troupe
