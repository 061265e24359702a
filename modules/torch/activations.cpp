#include "modules/torch/activations.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kQuickGeluSlope = 1.702;

// x * sigmoid(a x) = silu(a x) / a, so the library's vectorised silu serves both directions.
struct QuickGeluFunction : torch::autograd::Function<QuickGeluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    at::Tensor y = x * kQuickGeluSlope;
    at::silu_(y);
    return y.mul_(1.0 / kQuickGeluSlope);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {at::silu_backward(gradients[0], x * kQuickGeluSlope)};
  }
};

struct SwiGluFunction : torch::autograd::Function<SwiGluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    const std::int64_t width = x.size(1) / 2;
    return at::silu(x.narrow(1, 0, width)).mul_(x.narrow(1, width, width));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    const std::int64_t width = x.size(1) / 2;
    const at::Tensor gate = x.narrow(1, 0, width);
    at::Tensor x_gradient = at::empty_like(x);
    at::Tensor gate_gradient = x_gradient.narrow(1, 0, width);
    at::Tensor up_gradient = x_gradient.narrow(1, width, width);
    at::mul_out(up_gradient, at::silu(gate), gradients[0]);
    at::silu_backward_out(gate_gradient, gradients[0] * x.narrow(1, width, width), gate);
    return {x_gradient};
  }
};

}  // namespace

at::Tensor QuickGelu(const at::Tensor& x) { return QuickGeluFunction::apply(x); }

at::Tensor SwiGlu(const at::Tensor& x) { return SwiGluFunction::apply(x); }

}  // namespace troupe
