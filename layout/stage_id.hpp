// A pipeline stage as people name it: a module, and which of its stages.
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
