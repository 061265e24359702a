// Operations on the flat tensors of a parameter store as a whole, once per step.
#pragma once

#include <string>
#include <torch/types.h>
#include <vector>

#include "gpu/kernels/adamw.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Neighbouring elements of a store, [count] each, that share the settings of an update.
struct FlatRun {
  at::Tensor gradients;
  at::Tensor values;
  at::Tensor first_moments;
  at::Tensor second_moments;
  at::Tensor rounded;  ///< the values once more, in bfloat16, or undefined
};

/// One update in place; `rounded` gets the new values. By our own kernel for float32 on a GPU, by
/// operations of the library for `portable` numerics, else by a loop over host memory, which needs
/// no temporary tensors.
void StepAdamW(const AdamWStep& step, const FlatRun& run, bool portable);

/// The gradient of a parameter of a module or projector, flat.
struct PartGradient {
  std::string part;
  at::Tensor values;
};

/// Sum of the squares of all elements, and of those of each part; on a device known when it has
/// run.
ReducedGradients SumOfSquares(const std::vector<PartGradient>& gradients);

}  // namespace troupe
