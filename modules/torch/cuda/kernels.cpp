#include "modules/torch/cuda/kernels.hpp"

#ifdef TROUPE_TORCH_CUDA
#include <ATen/core/CachingHostAllocator.h>
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

bool HasRow(const at::Tensor& x) {
  return x.is_cuda() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

gpu::HeadRows HeadRowsOf(const at::Tensor& heads) {
  return {heads.data_ptr(), heads.stride(0), heads.stride(1), heads.stride(2)};
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
  return HasRow(x) && weight.scalar_type() == at::kFloat && x.size(1) <= gpu::kMostHidden;
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

bool HasDeviceSwiGlu(const at::Tensor& x) { return HasRow(x) && x.is_contiguous(); }

void SwiGluOnDevice(const at::Tensor& x, const at::Tensor& y) {
  gpu::SwiGlu(StreamOf(x), RowOf(x), x.data_ptr(), y.size(0), y.size(1), y.data_ptr());
}

void SwiGluGradientOnDevice(const at::Tensor& y_gradient, const at::Tensor& x,
                            const at::Tensor& x_gradient) {
  gpu::SwiGluGradient(StreamOf(x), RowOf(x), y_gradient.data_ptr(), x.data_ptr(),
                      y_gradient.size(0), y_gradient.size(1), x_gradient.data_ptr());
}

bool HasDeviceTurn(const at::Tensor& heads, const at::Tensor& to, const at::Tensor& cosine) {
  return HasRow(heads) && to.scalar_type() == heads.scalar_type() && heads.stride(3) == 1 &&
         to.stride(3) == 1 && cosine.scalar_type() == at::kFloat && cosine.is_contiguous();
}

void TurnHeadsOnDevice(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine,
                       double direction, const at::Tensor& to) {
  gpu::TurnHeads(StreamOf(heads), RowOf(heads), HeadRowsOf(heads), HeadRowsOf(to),
                 {heads.size(0), heads.size(1), heads.size(2), heads.size(3)},
                 cosine.data_ptr<float>(), sine.data_ptr<float>(), direction);
}

void CopyByKernel(const at::Tensor& from, const at::Tensor& to) {
  if (from.nbytes() == 0) return;
  const at::Tensor& on_host = from.is_cuda() ? to : from;
  const at::Tensor& on_device = from.is_cuda() ? from : to;
  gpu::Slices slices;
  slices.Add(BytesOf(from), from.nbytes(), BytesOf(to));
  gpu::GatherSlices(StreamOf(on_device), slices);
  at::getHostAllocator(at::kCUDA)->record_event(
      on_host.data_ptr(), on_host.storage().data_ptr().get_context(),
      c10::cuda::getCurrentCUDAStream(on_device.device().index()).unwrap());
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
