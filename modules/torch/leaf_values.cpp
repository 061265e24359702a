#include "modules/torch/leaf_values.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LeafValuesFunction : torch::autograd::Function<LeafValuesFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& leaf) {
    context->save_for_backward({leaf});
    return leaf.view_as(leaf);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    context->get_saved_variables()[0].mutable_grad().add_(gradients[0]);
    return {{}};
  }
};

}  // namespace

at::Tensor LeafValues(const at::Tensor& leaf) { return LeafValuesFunction::apply(leaf); }

}  // namespace troupe
