#include "modules/torch/layer_norm.hpp"

#include <array>
#include <tuple>

#include "modules/torch/autograd.hpp"
#include "modules/torch/products.hpp"

namespace troupe {
namespace {

// The library's own, but for where gradients go: its nodes want them in the type of the leaf, and
// would have the leaf rounded again and again where that is shorter than what is kept.
struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon) {
    const auto [y, mean, rstd] =
        at::native_layer_norm(Widened(x), {x.size(1)}, Widened(weight), Widened(bias), epsilon);
    context->save_for_backward({x, weight, bias, mean, rstd});
    NoteKept({x, mean, rstd});
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& bias = saved[2];
    const std::array<bool, 3> wanted = {context->needs_input_grad(0), weight.requires_grad(),
                                        bias.requires_grad()};
    const auto [x_gradient, weight_gradient, bias_gradient] =
        at::native_layer_norm_backward(Widened(gradients[0].contiguous()), Widened(x), {x.size(1)},
                                       saved[3], saved[4], Widened(weight), Widened(bias), wanted);
    if (wanted[1]) weight.mutable_grad().add_(weight_gradient);
    if (wanted[2]) bias.mutable_grad().add_(bias_gradient);
    return {wanted[0] ? x_gradient.to(x.scalar_type()) : x_gradient, {}, {}, {}};
  }
};

}  // namespace

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     double epsilon) {
  return LayerNormFunction::apply(x.contiguous(), weight, bias, epsilon);
}

}  // namespace troupe
