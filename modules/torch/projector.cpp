#include "modules/torch/projector.hpp"

#include <utility>

#include "modules/torch/layer_norm.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

/// PyTorch's default, which InternVL was trained with.
static constexpr double kNormEpsilon = 1e-5;

Projector::Projector(const EdgeConfig& edge, const ParameterStore& store, TensorGroupPtr group)
    : group_(std::move(group)) {
  const std::string name = ProjectorName(edge);
  if (edge.through->kind == ProjectorKind::kLinear) {
    first_ = LoadLinear(name + ".linear", store);
    return;
  }
  if (edge.through->kind == ProjectorKind::kPixelShuffle) {
    norm_ = LoadLayerNorm(name + ".layer_norm", store);
  }
  first_ = LoadLinear(name + ".linear_1", store);
  second_ = LoadLinear(name + ".linear_2", store);
}

at::Tensor Projector::Forward(const at::Tensor& rows) const {
  if (!second_) return Linear(rows, first_, LinearCut::kNone, group_);
  const at::Tensor in = norm_ ? LayerNorm(rows, norm_->weight, norm_->bias, kNormEpsilon) : rows;
  const at::Tensor wide = Linear(in, first_, LinearCut::kOutputs, group_);
  return Linear(at::gelu(wide), *second_, LinearCut::kInputs, group_);
}

}  // namespace troupe
