#include "actors/wait_root.hpp"

#include <algorithm>
#include <optional>

namespace troupe {
namespace {

struct Wait {
  std::string who;
  std::string what;
  std::string whom;  ///< empty: not named
};

Wait Parse(const std::string& line) {
  const auto colon = line.find(": ");
  if (colon == std::string::npos) return {line, "", ""};
  const auto arrow = line.rfind(" <- ");
  if (arrow == std::string::npos || arrow < colon) {
    return {line.substr(0, colon), line.substr(colon + 2), ""};
  }
  return {line.substr(0, colon), line.substr(colon + 2, arrow - colon - 2),
          line.substr(arrow + 4)};
}

/// The number that ends "gradient of microbatch 3".
std::string UnitOf(const Wait& wait) { return wait.what.substr(wait.what.rfind(' ') + 1); }

bool Waits(const std::vector<Wait>& waits, const std::string& who) {
  return std::any_of(waits.begin(), waits.end(), [&](const Wait& w) { return w.who == who; });
}

std::optional<std::string> LostBetween(const std::vector<Wait>& waits) {
  for (const Wait& a : waits) {
    for (const Wait& b : waits) {
      if (a.whom != b.who || b.whom != a.who || UnitOf(a) != UnitOf(b)) continue;
      if (a.what.rfind("gradient", 0) == 0) continue;  // tell it from the receiver's side
      return a.who + " waits for the " + a.what + " from " + b.who + ", which has sent it and " +
             "waits for the " + b.what + ": the message is lost";
    }
  }
  return std::nullopt;
}

}  // namespace

std::string RootOf(const std::vector<std::string>& lines) {
  if (lines.empty()) return "nobody says what for";
  std::vector<Wait> waits;
  for (const std::string& line : lines) waits.push_back(Parse(line));
  if (const auto lost = LostBetween(waits)) return *lost;
  for (const Wait& wait : waits) {
    if (!wait.whom.empty() && !Waits(waits, wait.whom)) {
      return wait.who + " waits for the " + wait.what + " from " + wait.whom +
             ", which waits for nobody";
    }
  }
  return lines.front();
}

}  // namespace troupe
