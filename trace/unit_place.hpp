// Which step a microbatch belongs to, and which of the step's microbatches it is: what people
// number by.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// A microbatch, or a window of them where the module works in windows, in its step.
struct UnitPlace {
  static constexpr std::int64_t kUnknown = -1;
  static constexpr std::int64_t kEvaluation = 0;

  std::int64_t step = kUnknown;    ///< training step, from 1; kEvaluation
  std::int64_t number = kUnknown;  ///< within the step, from 0
  bool window = false;

  friend bool operator==(const UnitPlace&, const UnitPlace&) = default;
};

/// "step 39 mb 1", "step 39 window 0", "evaluation mb 2", "mb 1" of an unknown step, "step 39" of
/// what is of no microbatch; empty where nothing is known.
std::string ToString(const UnitPlace& place);
/// The same after the name of something: " (step 39 mb 1)", or empty.
std::string InParentheses(const UnitPlace& place);

}  // namespace troupe
