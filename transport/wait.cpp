#include "transport/wait.hpp"

namespace troupe {

std::string ToString(const Wait& wait) { return "the " + WithoutArticle(wait); }

std::string WithoutArticle(const Wait& wait) {
  std::string text = wait.what;
  if (!wait.unit.empty()) text += " of " + wait.unit + " " + std::to_string(wait.number);
  if (!wait.whom.empty()) text += " from " + wait.whom;
  return text;
}

}  // namespace troupe
