// What is done to the flat tensors of a parameter store as a whole, once per step.
#pragma once

#include <memory>
#include <torch/types.h>
#include <vector>

#include "gpu/kernels/adamw.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/numerics.hpp"

namespace troupe {

/// Neighbouring elements of a store, [count] each, that share the settings of an update.
struct FlatRun {
  at::Tensor gradients;
  at::Tensor values;
  at::Tensor first_moments;
  at::Tensor second_moments;
  at::Tensor rounded;  ///< the values once more, in bfloat16, or undefined
};

class FlatOptimizer {
 public:
  virtual ~FlatOptimizer() = default;
  /// One update in place; `rounded` gets the new values.
  virtual void Step(const AdamWStep& step, const FlatRun& run) = 0;
  /// Sum of the squares of all elements; on a device known when it has run.
  virtual ReducedGradients SumOfSquares(const std::vector<at::Tensor>& parts) = 0;
};

/// Plain loops over host memory, or for `portable` numerics operations of the library.
std::unique_ptr<FlatOptimizer> MakeFlatOptimizer(const Numerics& numerics);

}  // namespace troupe
