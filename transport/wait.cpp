#include "transport/wait.hpp"

#include <array>

namespace troupe {

const char* ToString(WaitUnit unit) {
  static constexpr std::array kWords = {"", "microbatch", "window", "round",
                                        "microbatch of the round"};
  return kWords.at(static_cast<std::size_t>(unit));
}

std::string ToString(const Wait& wait) { return "the " + WithoutArticle(wait); }

std::string WithoutArticle(const Wait& wait) {
  std::string text = wait.what;
  if (wait.unit != WaitUnit::kNone) {
    text += std::string(" of ") + ToString(wait.unit) + " " + std::to_string(wait.number);
  }
  if (!wait.whom.empty()) text += " from " + wait.whom;
  return text;
}

}  // namespace troupe
