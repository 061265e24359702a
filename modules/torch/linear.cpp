#include "modules/torch/linear.hpp"

#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/products.hpp"

namespace troupe {
namespace {

/// The arguments of a linear layer that are no autograd variables of it.
struct LinearRest {
  at::Tensor bias;
  LinearCut cut;
  TensorGroupPtr group;
};

// The weight is an argument although its gradient is accumulated by hand: it makes the node exist
// when the input itself needs no gradient.
struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const LinearRest& rest) {
    const bool sums_outputs = rest.cut == LinearCut::kInputs && rest.group->size() > 1;
    const bool adds_bias_first = rest.bias.defined() && !sums_outputs;
    at::Tensor y = adds_bias_first ? ProductPlus(rest.bias, x, weight.t()) : Product(x, weight.t());
    if (sums_outputs) {
      rest.group->AllReduce(y);
      if (rest.bias.defined()) y.add_(rest.bias);
    }
    context->save_for_backward({x, weight, rest.bias});
    if (rest.cut == LinearCut::kOutputs && rest.group->size() > 1) {
      context->saved_data["group"] = c10::IValue::make_capsule(rest.group);
    }
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& gradient = gradients[0];
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = Product(gradient, saved[1]);
      if (context->saved_data.count("group") > 0) {
        Held<TensorGroup>(context, "group")->AllReduce(x_gradient);
      }
    }
    RunOrDefer([gradient, saved] { Accumulate(gradient, saved); });
    return {x_gradient, {}, {}};
  }

  static void Accumulate(const at::Tensor& gradient, const variable_list& saved) {
    const at::Tensor& weight = saved[1];
    const at::Tensor& bias = saved[2];
    if (weight.requires_grad()) AddProduct(weight.mutable_grad(), gradient.t(), saved[0]);
    if (!bias.defined() || !bias.requires_grad()) return;
    at::Tensor& sum = bias.mutable_grad();
    sum.add_(gradient.sum(0, /*keepdim=*/false, sum.scalar_type()));
  }
};

}  // namespace

LinearWeights LoadLinear(const std::string& name, const ParameterStore& store) {
  return {store.Leaf(name + ".weight"), store.Leaf(name + ".bias")};
}

at::Tensor Linear(const at::Tensor& x, const LinearWeights& weights, LinearCut cut,
                  const TensorGroupPtr& group) {
  return LinearFunction::apply(x, weights.weight, LinearRest{weights.bias, cut, group});
}

}  // namespace troupe
