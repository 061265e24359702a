// How much a training step computes, from the configuration alone: what time is measured against.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// What a step computes on, over all microbatches and replicas.
struct StepShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;  ///< of each sample, image rows and padding included
  std::int64_t labels = 0;  ///< rows that go through the head: tokens that have a label
  std::map<std::string, std::int64_t> images = {};  ///< by encoder
};

/// Floating-point operations, a multiplication and an addition being two.
struct PassFlops {
  double forward = 0.0;
  double backward = 0.0;
  double weights = 0.0;  ///< of the backward, what makes gradients of weights
  PassFlops& operator+=(const PassFlops& other);
  double total() const { return forward + backward; }
};

struct PartFlops {
  std::string name;  ///< of a module, or of an edge's projector
  PassFlops flops;
};

/// The matrix products that the model needs, whatever the layout: linears, patches, attention and
/// head. Of attention with a mask only the pairs of positions that see each other. What is computed
/// again (`recompute`), norms, activations, embeddings and the optimizer do not count. Backward
/// computes gradients of what trains, and of inputs where anything before them trains. Modules in
/// the order of the configuration, then projectors in that of its edges; synthetic ones have none.
std::vector<PartFlops> StepFlops(const Config& config, const StepShape& shape);

/// Those of one stage, of everything that runs on it; `shape` is what its ranks compute on together.
PassFlops StageFlops(const Config& config, const std::string& module, int pp,
                     const StepShape& shape);

/// The sum of all parts, forward and backward.
double TotalFlops(const std::vector<PartFlops>& parts);

}  // namespace troupe
