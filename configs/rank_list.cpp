#include "configs/rank_list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

static std::string_view Trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

static std::optional<int> ParseRank(std::string_view text) {
  text = Trimmed(text);
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && rank >= 0 && rank < kMaxRanks ? std::optional(rank) : std::nullopt;
}

/// Adds the ranks of "5" or "0-2". Returns the reason if `part` is neither, else "".
static std::string AddPart(std::string_view part, std::vector<int>& ranks) {
  const auto dash = part.find('-');
  const auto first = ParseRank(part.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : ParseRank(part.substr(dash + 1));
  if (!first || !last) return Quoted(Trimmed(part)) + " is neither a rank nor first-last";
  if (*last < *first) return Quoted(Trimmed(part)) + " runs backwards";
  if (ranks.size() + static_cast<std::size_t>(*last - *first) >= kMaxRanks) {
    return "more than " + std::to_string(kMaxRanks) + " ranks";
  }
  for (int rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  return {};
}

std::variant<std::vector<int>, std::string> ParseRanks(std::string_view text) {
  std::vector<int> ranks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (auto reason = AddPart(text.substr(begin, end - begin), ranks); !reason.empty()) {
      return reason;
    }
    begin = end + 1;
  }
  return ranks;
}

}  // namespace troupe
