#pragma once

#include <optional>
#include <torch/types.h>

#include "modules/torch/encoder_layers.hpp"
#include "modules/torch/linear.hpp"

namespace troupe {

/// From the width of an encoder's rows to that of the language model (kinds/projector.hpp). Cut over
/// the tensor-parallel group of the module it runs on.
class Projector {
 public:
  /// Of `edge`, which has one; its parameters must be in `store`.
  Projector(const EdgeConfig& edge, const ParameterStore& store, TensorGroupPtr group);

  /// [rows, from] -> [rows, to], zero rows included.
  at::Tensor Forward(const at::Tensor& rows) const;

 private:
  std::optional<LayerNormWeights> norm_;
  LinearWeights first_;
  std::optional<LinearWeights> second_;  ///< after a GELU
  TensorGroupPtr group_;
};

}  // namespace troupe
