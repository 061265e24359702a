// The step of a microbatch, and its number within the step, as people count them.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// A microbatch in its step, or a window if the module works in windows.
struct UnitPlace {
  static constexpr std::int64_t kUnknown = -1;
  static constexpr std::int64_t kEvaluation = 0;

  std::int64_t step = kUnknown;    ///< training step, from 1; kEvaluation
  std::int64_t number = kUnknown;  ///< within the step, from 0
  bool window = false;

  friend bool operator==(const UnitPlace&, const UnitPlace&) = default;
};

/// "step 39 mb 1", "step 39 window 0", "evaluation mb 2", "mb 1" for an unknown step, "step 39"
/// without a microbatch; empty if nothing is known.
std::string ToString(const UnitPlace& place);
/// " (step 39 mb 1)", or empty.
std::string InParentheses(const UnitPlace& place);

}  // namespace troupe
