// Lists of ranks from text: "4-7", "0-2,5". The other way round: layout/ranks_text.hpp.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// The ranks in `text`, in the order written, or the reason why it is no rank list. Repetitions are
/// kept: whether they are legal is not a question of spelling.
std::variant<std::vector<int>, std::string> ParseRanks(std::string_view text);

}  // namespace troupe
