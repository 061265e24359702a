#include "trace/unit_place.hpp"

namespace troupe {

std::string ToString(const UnitPlace& place) {
  std::string text;
  if (place.step == UnitPlace::kEvaluation) text = "evaluation";
  if (place.step > 0) text = "step " + std::to_string(place.step);
  if (place.number < 0) return text;
  return text + (text.empty() ? "" : " ") + (place.window ? "window " : "mb ") +
         std::to_string(place.number);
}

std::string InParentheses(const UnitPlace& place) {
  const std::string text = ToString(place);
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace troupe
