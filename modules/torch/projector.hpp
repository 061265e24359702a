#pragma once

#include <string>
#include <torch/types.h>

#include "modules/torch/linear.hpp"

namespace troupe {

/// linear, GELU, linear: from the hidden size of an encoder's rows to the language model's. Cut
/// over the tensor-parallel group of the module it runs on.
class Projector {
 public:
  /// `name` is the prefix of its parameters in `store`.
  Projector(const std::string& name, const ParameterStore& store, TensorGroupPtr group);

  /// [rows, from] -> [rows, to], zero rows included.
  at::Tensor Forward(const at::Tensor& rows) const;

 private:
  LinearWeights first_;
  LinearWeights second_;
  TensorGroupPtr group_;
};

}  // namespace troupe
