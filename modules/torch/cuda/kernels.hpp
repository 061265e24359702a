// Our own kernels (gpu/kernels/device.hpp) on tensors of one GPU, which are contiguous. They are
// queued on the stream on which libtorch computes for the calling thread. Without a libtorch that
// knows GPUs there are none (HasDevice... is false), and all others throw std::logic_error.
#pragma once

#include <cstddef>
#include <torch/types.h>

#include "modules/torch/flat_optimizer.hpp"

namespace troupe {

/// AdamW in one pass over memory; `run` is float32, its `rounded` bfloat16.
void ApplyAdamWOnDevice(const AdamWStep& step, const FlatRun& run);

/// Whether there is a kernel for rows x [M, H] on a GPU and `weight` [H].
bool HasDeviceNorm(const at::Tensor& x, const at::Tensor& weight);
/// RmsNormRows and RmsNormGradient of gpu/kernels/rms_norm.hpp. Nothing is added to an undefined
/// weight_gradient.
void RmsNormOnDevice(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                     const at::Tensor& y, const at::Tensor& rstd);
void RmsNormGradientOnDevice(const at::Tensor& y_gradient, const at::Tensor& x,
                             const at::Tensor& weight, const at::Tensor& rstd,
                             const at::Tensor& x_gradient, const at::Tensor& weight_gradient);

/// Whether there are kernels for SwiGlu of rows x.
bool HasDeviceSwiGlu(const at::Tensor& x);
/// Into y [M, F], of x [M, 2 F]; and into x_gradient.
void SwiGluOnDevice(const at::Tensor& x, const at::Tensor& y);
void SwiGluGradientOnDevice(const at::Tensor& y_gradient, const at::Tensor& x,
                            const at::Tensor& x_gradient);

/// Whether there is a kernel that turns `heads` into `to`, both [S, L, h, D] of any strides, by a
/// table like `cosine`.
bool HasDeviceTurn(const at::Tensor& heads, const at::Tensor& to, const at::Tensor& cosine);
/// Cosine and sine [>= L, D / 2].
void TurnHeadsOnDevice(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine,
                       double direction, const at::Tensor& to);

/// Copies between pinned memory of the host and a GPU, queued on the GPU's stream. Other memory of the
/// host's allocator does not take the pinned memory's place before the copy has run. Unlike a copy by
/// the device's copy engine it does not wait for copies on other streams.
void CopyByKernel(const at::Tensor& from, const at::Tensor& to);

inline std::byte* BytesOf(const at::Tensor& rows) {
  return static_cast<std::byte*>(rows.data_ptr());
}
/// The bytes of each row of `rows` [n, H].
inline std::size_t RowBytes(const at::Tensor& rows) {
  return static_cast<std::size_t>(rows.size(1) * rows.element_size());
}
/// GatherRows, ScatterRows and TakeRows of gpu/kernels/rows.hpp: `whole` [M, H] and `rows` [n, H]
/// of one type, `index` [n] int64.
void GatherRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows);
void ScatterRowsOnDevice(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& whole);
void TakeRowsOnDevice(const at::Tensor& whole, const at::Tensor& index, const at::Tensor& rows);

}  // namespace troupe
