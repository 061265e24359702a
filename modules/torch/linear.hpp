// Linear layers, whole or cut over a tensor-parallel group.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/torch/parameter_store.hpp"
#include "modules/torch/tensor_group.hpp"

namespace troupe {

/// How a linear layer's weight is cut.
enum class LinearCut {
  kNone,     ///< every rank computes the whole
  kOutputs,  ///< column-parallel: a rank computes its outputs; input gradients are summed
  kInputs,   ///< row-parallel: a rank has its inputs; outputs are summed
};

/// An adapter beside some outputs of a linear layer (configs/config.hpp, LoraConfig).
struct AdapterWeights {
  at::Tensor a;                   ///< [rank, in]
  at::Tensor b;                   ///< [outputs, rank]
  std::int64_t first_output = 0;  ///< of the layer
  double scale = 1.0;
  double dropout = 0.0;
  at::Tensor features = {};  ///< of the inputs, for dropout (modules/torch/dropout.hpp)
};

/// Leaves of one linear layer as a rank holds them.
struct LinearWeights {
  at::Tensor weight;  ///< [out, in]
  at::Tensor bias;    ///< [out], or undefined; with kInputs it is whole and added after the sum
  std::vector<AdapterWeights> adapters = {};

  /// A leaf that trains if any of them does.
  const at::Tensor& trained() const { return adapters.empty() ? weight : adapters.front().a; }
};

/// A leaf of `linears` that trains, if any does.
const at::Tensor& AnyTrained(std::initializer_list<const LinearWeights*> linears);

/// The parameters NAME.weight, NAME.bias if there is one, and adapters, of neighbouring layers that
/// share their input, stacked. `module` says whether they have adapters.
LinearWeights LoadLinears(const std::vector<std::string>& names, const ModuleConfig& module,
                          const ParameterStore& store);
/// The parameters NAME.weight and NAME.bias of a layer without adapters.
LinearWeights LoadLinear(const std::string& name, const ParameterStore& store);

/// y [M, out] = x [M, in] W^T + b. With `cut_rows` = M above 0, rows outside of the layer are cut over
/// the group (sequence_rows.hpp): x of kOutputs, which is gathered here and again in the backward, and
/// y of kInputs, whose sums go to the ranks that have their rows. The gradients of weight and bias are added to their .grad, which
/// must be preset when they train and may be of a longer type: one multiplication that accumulates
/// instead of a product, a temporary and a sum. M = 0 is legal and still takes part in the
/// collectives.
at::Tensor Linear(const at::Tensor& x, const LinearWeights& weights, LinearCut cut,
                  const TensorGroupPtr& group, std::int64_t cut_rows = 0);

}  // namespace troupe
