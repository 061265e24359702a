#include "modules/torch/activations.hpp"

#include "modules/torch/autograd.hpp"
#include "modules/torch/cuda/kernels.hpp"
#include "modules/torch/products.hpp"

namespace troupe {
namespace {

constexpr double kQuickGeluSlope = 1.702;

// x * sigmoid(a x) = silu(a x) / a, so the library's vectorised silu serves both directions.
struct QuickGeluFunction : torch::autograd::Function<QuickGeluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    NoteKept({x});
    at::Tensor y = Widened(x) * kQuickGeluSlope;
    at::silu_(y);
    return y.mul_(1.0 / kQuickGeluSlope).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {
        at::silu_backward(Widened(gradients[0]), Widened(x) * kQuickGeluSlope).to(x.scalar_type())};
  }
};

struct SwiGluFunction : torch::autograd::Function<SwiGluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    NoteKept({x});
    const std::int64_t width = x.size(1) / 2;
    if (HasDeviceSwiGlu(x)) {
      const at::Tensor y = at::empty({x.size(0), width}, x.options());
      SwiGluOnDevice(x, y);
      return y;
    }
    return at::silu(Widened(x.narrow(1, 0, width)))
        .mul_(x.narrow(1, width, width))
        .to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    const std::int64_t width = x.size(1) / 2;
    if (HasDeviceSwiGlu(x)) {
      const at::Tensor x_gradient = at::empty_like(x);
      SwiGluGradientOnDevice(gradients[0].contiguous(), x, x_gradient);
      return {x_gradient};
    }
    const at::Tensor gate = Widened(x.narrow(1, 0, width));
    const at::Tensor gradient = Widened(gradients[0]);
    at::Tensor x_gradient = at::empty(x.sizes(), gradient.options());
    at::Tensor gate_gradient = x_gradient.narrow(1, 0, width);
    at::Tensor up_gradient = x_gradient.narrow(1, width, width);
    at::mul_out(up_gradient, at::silu(gate), gradient);
    at::silu_backward_out(gate_gradient, gradient * x.narrow(1, width, width), gate);
    return {x_gradient.to(x.scalar_type())};
  }
};

}  // namespace

at::Tensor QuickGelu(const at::Tensor& x) { return QuickGeluFunction::apply(x); }

at::Tensor SwiGlu(const at::Tensor& x) { return SwiGluFunction::apply(x); }

}  // namespace troupe
