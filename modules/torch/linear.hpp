// Linear layers, whole or cut over a tensor-parallel group.
#pragma once

#include <string>
#include <torch/types.h>

#include "modules/torch/parameter_store.hpp"
#include "modules/torch/tensor_group.hpp"

namespace troupe {

/// How a linear layer's weight is cut.
enum class LinearCut {
  kNone,     ///< every rank computes the whole
  kOutputs,  ///< column-parallel: a rank computes its outputs; input gradients are summed
  kInputs,   ///< row-parallel: a rank has its inputs; outputs are summed
};

/// Leaves of one linear layer as a rank holds them.
struct LinearWeights {
  at::Tensor weight;  ///< [out, in]
  at::Tensor bias;    ///< [out], or undefined; with kInputs it is whole and added after the sum
};

/// The parameters NAME.weight and NAME.bias.
LinearWeights LoadLinear(const std::string& name, const ParameterStore& store);

/// y [M, out] = x [M, in] W^T + b. The gradients of weight and bias are added to their .grad, which
/// must be preset when they train and may be of a longer type: one multiplication that accumulates
/// instead of a product, a temporary and a sum. M = 0 is legal and still takes part in the
/// collectives.
at::Tensor Linear(const at::Tensor& x, const LinearWeights& weights, LinearCut cut,
                  const TensorGroupPtr& group);

}  // namespace troupe
