// The computation of a shard between its links, without the bookkeeping of passes.
#pragma once

#include <stdexcept>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// Outputs of one pass: one per outgoing link, or the summed loss alone where a loss is computed.
struct BodyResult {
  std::vector<at::Tensor> outputs;
  LossSums loss;
  /// The rest of `loss`, on the device: [3] float64, nats, correct and correct content tokens.
  at::Tensor late_loss = {};
};

class StageBody {
 public:
  virtual ~StageBody() = default;
  /// `inputs` are those of `pass` as tensors. Records a graph if grad mode is on. Throws
  /// std::invalid_argument for what does not fit together.
  virtual BodyResult Forward(const std::vector<at::Tensor>& inputs, const ForwardPass& pass) = 0;
};

/// Returns the data of `pass`. Throws std::invalid_argument that names the stage if there is none.
inline const Inputs& RequireData(const ForwardPass& pass, const std::string& module) {
  if (!pass.data) throw std::invalid_argument(module + ": expected input data, got none");
  return *pass.data;
}

}  // namespace troupe
