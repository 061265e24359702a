// Counts the operations of a training step, from the configuration alone. Times are compared with
// this count.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/work.hpp"

namespace troupe {

struct PartFlops {
  std::string name;  ///< of a module, or of an edge's projector
  PassFlops flops;
};

/// Returns the matrix products that the model needs, whatever the layout: linears, patches,
/// attention and head. Masked attention counts only the pairs of positions that see each other.
/// Recomputation (`recompute`), norms, activations, embeddings and the optimizer do not count.
/// Backward computes gradients of the parts that train, and of inputs if an earlier part trains.
/// Lists modules in the order of the configuration, then projectors in the order of its edges;
/// synthetic modules have none.
std::vector<PartFlops> StepFlops(const Config& config, const StepShape& shape);

/// Returns the operations of one stage with all its parts. `shape` is the work that its ranks
/// share.
PassFlops StageFlops(const Config& config, const std::string& module, int pp,
                     const StepShape& shape);

/// Returns the sum of all parts, forward and backward.
double TotalFlops(const std::vector<PartFlops>& parts);

}  // namespace troupe
