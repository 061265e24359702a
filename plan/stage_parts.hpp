// Lists the parts of a stage in the order in which they run. Parameters, gradients, memory
// estimates and operation counts follow this one list.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// Layers of a module, or the projector of an edge. Points into the configuration.
struct StagePart {
  const ModuleConfig* module = nullptr;  ///< module of the layers; null: a projector
  const EdgeConfig* edge = nullptr;      ///< edge of the projector; null: layers
  int pp = 0;                            ///< stage of `module`; 0 for an inline encoder
  bool trains = false;
  bool input_gradient = false;  ///< its input has a gradient: an earlier part trains

  /// Returns whether it runs a backward, and so keeps activations for it.
  bool runs_backward() const { return trains || input_gradient; }
};

/// Returns the parts of stage `pp` of `module`: inline encoders with their projectors, incoming
/// projectors, own layers, outgoing projectors.
std::vector<StagePart> StageParts(const Config& config, const std::string& module, int pp);

}  // namespace troupe
