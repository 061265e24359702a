#include "transport/wait.hpp"

namespace troupe {

std::string ToString(const Wait& wait) { return "the " + WithoutArticle(wait); }

std::string WithoutArticle(const Wait& wait) {
  std::string text = wait.what;
  if (!wait.unit.empty()) text += " of " + wait.unit + " " + std::to_string(wait.number);
  if (!wait.whom.empty()) text += " from " + wait.whom;
  return text;
}

std::string OnRanks(const std::string& what, const std::vector<int>& ranks) {
  std::string text = what + (ranks.size() == 1 ? " on device " : " on devices ");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

std::string DeviceName(int rank) { return "device " + std::to_string(rank); }

}  // namespace troupe
