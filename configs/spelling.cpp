#include "configs/spelling.hpp"

#include <algorithm>
#include <vector>

#include "configs/toml_value.hpp"

namespace troupe {

int EditDistance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return cost[i * columns + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<int>(i + j);
        continue;
      }
      const int replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return cost.back();
}

std::string Nearest(std::string_view word, std::span<const std::string> known) {
  // Keys are short, so a longer word is not a misspelling. The edit distance takes quadratic time.
  if (word.size() > 64) return {};
  std::string nearest;
  int least = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const auto& candidate : known) {
    const int distance = EditDistance(word, candidate);
    const bool shares_something = distance < static_cast<int>(candidate.size());
    if (distance >= least || !shares_something) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string Alternatives(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += Quoted(words[i]);
  }
  return text;
}

}  // namespace troupe
