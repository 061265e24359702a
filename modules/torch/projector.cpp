#include "modules/torch/projector.hpp"

#include <utility>

namespace troupe {

Projector::Projector(const std::string& name, const ParameterStore& store, TensorGroupPtr group)
    : first_(LoadLinear(name + ".linear_1", store)),
      second_(LoadLinear(name + ".linear_2", store)),
      group_(std::move(group)) {}

at::Tensor Projector::Forward(const at::Tensor& rows) const {
  const at::Tensor wide = Linear(rows, first_, LinearCut::kOutputs, group_);
  return Linear(at::gelu(wide), second_, LinearCut::kInputs, group_);
}

}  // namespace troupe
