// What a shard computes between its links, without the bookkeeping of passes.
#pragma once

#include <memory>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/parameter_store.hpp"
#include "modules/torch/tensor_group.hpp"

namespace troupe {

/// Outputs of one pass: one per outgoing link, or the summed loss alone where a loss is computed.
struct BodyResult {
  std::vector<at::Tensor> outputs;
  LossSums loss;
  /// Where the device has the rest of `loss`: [3] float64, nats, correct and correct content
  /// tokens.
  at::Tensor late_loss = {};
};

class StageBody {
 public:
  virtual ~StageBody() = default;
  /// `inputs` has one tensor per incoming link; `data` is null where the stage reads none. Records
  /// a graph if grad mode is on. Throws std::invalid_argument for what does not fit together.
  virtual BodyResult Forward(const std::vector<at::Tensor>& inputs, const Inputs* data) = 0;
};

/// Stage `pp` of a module of that kind; `store` must outlive it.
std::unique_ptr<StageBody> MakeVitBody(const Config& config, const ModuleConfig& module, int pp,
                                       const ParameterStore& store, const TensorGroupPtr& group);
std::unique_ptr<StageBody> MakeLlamaBody(const Config& config, const ModuleConfig& module, int pp,
                                         const ParameterStore& store, const TensorGroupPtr& group);

/// The images [n, 3, S, S] in host memory that `data` has for an encoder; n = 0 when it has none.
at::Tensor ImagesOf(const Inputs& data, const ModuleConfig& encoder);

/// `data`, or std::invalid_argument that says which stage expected some.
const Inputs& RequireData(const Inputs* data, const std::string& module);

}  // namespace troupe
