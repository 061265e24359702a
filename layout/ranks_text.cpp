#include "layout/ranks_text.hpp"

namespace troupe {

std::string RanksText(std::span<const int> ranks) {
  std::string text;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[begin]);
    if (end - begin > 1) text += '-' + std::to_string(ranks[end - 1]);
    begin = end;
  }
  return text;
}

std::string RanksOnCores(int ranks, int cores) {
  return std::to_string(ranks) + (ranks == 1 ? " rank on " : " ranks on ") + std::to_string(cores) +
         (cores == 1 ? " core" : " cores");
}

}  // namespace troupe
