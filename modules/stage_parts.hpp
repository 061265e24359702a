// What a stage consists of, in the order in which it runs: the one list that parameters, gradients,
// memory estimates and operation counts follow.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// Layers of a module, or the projector of an edge. Points into the configuration.
struct StagePart {
  const ModuleConfig* module = nullptr;  ///< whose layers; null: a projector
  const EdgeConfig* edge = nullptr;      ///< whose projector; null: layers
  int pp = 0;                            ///< stage of `module`; of an inline encoder 0
  bool trains = false;
  bool input_gradient = false;  ///< its input has a gradient: something before it trains

  /// Whether it runs a backward, and so keeps what that needs.
  bool runs_backward() const { return trains || input_gradient; }
};

/// The parts of stage `pp` of `module`: inline encoders with their projectors, incoming projectors,
/// own layers, outgoing projectors.
std::vector<StagePart> StageParts(const Config& config, const std::string& module, int pp);

}  // namespace troupe
