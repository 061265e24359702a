#include "modules/torch/rms_norm.hpp"

#include "gpu/kernels/rms_norm.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/cuda/kernels.hpp"

namespace troupe {
namespace {

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double epsilon) {
    at::Tensor y = at::empty_like(x);
    at::Tensor rstd = at::empty({x.size(0)}, weight.options());
    if (x.is_cuda()) {
      RmsNormOnDevice(x, weight, epsilon, y, rstd);
    } else {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "RmsNorm", [&] {
        RmsNormRows(x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), x.size(0), x.size(1),
                    epsilon, y.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>());
      });
    }
    context->save_for_backward({x, weight, rstd});
    NoteKept({x, rstd});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& rstd = saved[2];
    const at::Tensor y_gradient = gradients[0].contiguous();
    const at::Tensor x_gradient = at::empty_like(x);
    at::Tensor sum;
    if (weight.requires_grad()) sum = weight.mutable_grad();
    if (x.is_cuda()) {
      RmsNormGradientOnDevice(y_gradient, x, weight, rstd, x_gradient, sum);
      return {x_gradient, {}, {}};
    }
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "RmsNorm", [&] {
      RmsNormGradient(y_gradient.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(),
                      weight.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(), x.size(0), x.size(1),
                      x_gradient.data_ptr<scalar_t>(),
                      sum.defined() ? sum.data_ptr<scalar_t>() : nullptr);
    });
    return {x_gradient, {}, {}};
  }
};

// The same of the library's operations. A product of a short and a long number is a long one.
struct PortableRmsNorm : torch::autograd::Function<PortableRmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double epsilon) {
    const at::Tensor norm =
        at::linalg_vector_norm(x, 2, at::IntArrayRef{1}, /*keepdim=*/true, weight.scalar_type());
    const at::Tensor rstd =
        norm.square_().div_(static_cast<double>(x.size(1))).add_(epsilon).rsqrt_();
    context->save_for_backward({x, weight, rstd});
    NoteKept({x, rstd});
    at::Tensor y = at::empty_like(x);
    return at::mul_out(y, x * rstd, weight);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& rstd = saved[2];
    const at::Tensor normed = x * rstd;
    if (weight.requires_grad()) weight.mutable_grad().add_((normed * gradients[0]).sum(0));
    at::Tensor pull = gradients[0] * weight;
    const at::Tensor mean = (pull * normed).mean(1, /*keepdim=*/true);
    pull.addcmul_(normed, mean, -1);
    at::Tensor x_gradient = at::empty_like(x);
    return {at::mul_out(x_gradient, pull, rstd), {}, {}};
  }
};

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                   const Numerics& numerics) {
  const at::Tensor wide = weight.to(numerics.state_type);  // itself, unless it is frozen
  if (numerics.portable && !HasDeviceNorm(x, wide)) {
    return PortableRmsNorm::apply(x, wide, epsilon);
  }
  return RmsNormFunction::apply(x.contiguous(), wide, epsilon);
}

}  // namespace troupe
