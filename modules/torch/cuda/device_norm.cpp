#include "modules/torch/cuda/device_norm.hpp"

#ifdef TROUPE_TORCH_CUDA
#include <ATen/ops/empty.h>

#include "gpu/kernels/device.hpp"
#include "modules/torch/cuda/current_stream.hpp"

namespace troupe {
namespace {

gpu::Row RowOf(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? gpu::Row::kFloat32 : gpu::Row::kBFloat16;
}

}  // namespace

bool HasDeviceNorm(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cuda() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         weight.scalar_type() == at::kFloat && x.size(1) <= gpu::kMostHidden;
}

void RmsNormOnDevice(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                     const at::Tensor& y, const at::Tensor& rstd) {
  gpu::RmsNorm(StreamOf(x), RowOf(x), x.data_ptr(), weight.data_ptr<float>(), x.size(0), x.size(1),
               epsilon, y.data_ptr(), rstd.data_ptr<float>());
}

void RmsNormGradientOnDevice(const at::Tensor& y_gradient, const at::Tensor& x,
                             const at::Tensor& weight, const at::Tensor& rstd,
                             const at::Tensor& x_gradient, const at::Tensor& weight_gradient) {
  const bool trains = weight_gradient.defined();
  at::Tensor spare;
  if (trains) spare = at::empty({gpu::SpareOfRmsNorm(x.size(1))}, weight.options());
  gpu::RmsNormGradient(StreamOf(x), RowOf(x), y_gradient.data_ptr(), x.data_ptr(),
                       weight.data_ptr<float>(), rstd.data_ptr<float>(), x.size(0), x.size(1),
                       x_gradient.data_ptr(), trains ? weight_gradient.data_ptr<float>() : nullptr,
                       trains ? spare.data_ptr<float>() : nullptr);
}

}  // namespace troupe

#else
#include <stdexcept>

namespace troupe {
namespace {

[[noreturn]] void RefuseNorm() {
  throw std::logic_error("norm: this build's libtorch knows no CUDA devices");
}

}  // namespace

bool HasDeviceNorm(const at::Tensor&, const at::Tensor&) { return false; }
void RmsNormOnDevice(const at::Tensor&, const at::Tensor&, double, const at::Tensor&,
                     const at::Tensor&) {
  RefuseNorm();
}
void RmsNormGradientOnDevice(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                             const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  RefuseNorm();
}

}  // namespace troupe
#endif
