// A pipeline stage: a module and the stage's number in it.
#pragma once

#include <compare>
#include <string>

namespace troupe {

struct StageId {
  std::string module;
  int number = 0;  ///< among the module's stages

  auto operator<=>(const StageId&) const = default;
};

/// "vision.s0".
inline std::string ToString(const StageId& stage) {
  return stage.module + ".s" + std::to_string(stage.number);
}

}  // namespace troupe
