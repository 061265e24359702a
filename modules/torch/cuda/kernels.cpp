#include "modules/torch/cuda/kernels.hpp"

#ifdef TROUPE_TORCH_CUDA
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAStream.h>

#include "gpu/kernels/device.hpp"

namespace troupe {
namespace {

gpu::StreamView StreamOf(const at::Tensor& tensor) {
  return gpu::StreamView(c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream());
}

gpu::Row RowOf(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? gpu::Row::kFloat32 : gpu::Row::kBFloat16;
}

}  // namespace

void ApplyAdamWOnDevice(const AdamWStep& step, const FlatRun& run) {
  auto* const rounded =
      run.rounded.defined() ? static_cast<std::uint16_t*>(run.rounded.mutable_data_ptr()) : nullptr;
  gpu::ApplyAdamW(StreamOf(run.values), step, run.values.numel(), run.gradients.data_ptr<float>(),
                  run.values.data_ptr<float>(), run.first_moments.data_ptr<float>(),
                  run.second_moments.data_ptr<float>(), rounded);
}

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

void GatherRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows) {
  gpu::GatherRows(StreamOf(rows), BytesOf(whole), index.data_ptr<std::int64_t>(), rows.size(0),
                  RowBytes(rows), BytesOf(rows));
}

void ScatterRowsOnDevice(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& whole) {
  gpu::ScatterRows(StreamOf(rows), BytesOf(rows), index.data_ptr<std::int64_t>(), rows.size(0),
                   RowBytes(rows), BytesOf(whole));
}

void TakeRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows) {
  gpu::TakeRows(StreamOf(rows), BytesOf(whole), index.data_ptr<std::int64_t>(), rows.size(0),
                RowBytes(rows), BytesOf(rows));
}

}  // namespace troupe
#endif
