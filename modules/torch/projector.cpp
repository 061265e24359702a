#include "modules/torch/projector.hpp"

#include <utility>

namespace troupe {

Projector::Projector(const std::string& name, const ParameterStore& store, TensorGroupPtr group)
    : first_{store.Leaf(name + ".linear_1.weight"), store.Leaf(name + ".linear_1.bias")},
      second_{store.Leaf(name + ".linear_2.weight"), store.Leaf(name + ".linear_2.bias")},
      group_(std::move(group)) {}

at::Tensor Projector::Forward(const at::Tensor& rows) const {
  const at::Tensor wide = Linear(rows, first_, LinearCut::kOutputs, group_);
  return Linear(at::gelu(wide), second_, LinearCut::kInputs, group_);
}

}  // namespace troupe
