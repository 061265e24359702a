// Lists of ranks as text: "4-7", "0-2,5".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// The ranks in `text`, in the order written, or the reason why it is no rank list. Repetitions are
/// kept: whether they are legal is not a question of spelling.
std::variant<std::vector<int>, std::string> ParseRanks(std::string_view text);

/// The shortest text that ParseRanks turns back into `ranks`.
std::string RanksText(std::span<const int> ranks);

}  // namespace troupe
