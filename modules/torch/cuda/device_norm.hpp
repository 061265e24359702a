// The norm of rows by our own kernels, on the stream that libtorch computes on.
#pragma once

#include <torch/types.h>

namespace troupe {

/// Whether there is a kernel for rows x [M, H] on a GPU and `weight` [H].
bool HasDeviceNorm(const at::Tensor& x, const at::Tensor& weight);

/// RmsNormRows and RmsNormGradient of gpu/kernels/rms_norm.hpp for contiguous tensors of one GPU.
/// Nothing is added to an undefined weight_gradient. Throws std::logic_error where libtorch knows
/// no GPUs.
void RmsNormOnDevice(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                     const at::Tensor& y, const at::Tensor& rstd);
void RmsNormGradientOnDevice(const at::Tensor& y_gradient, const at::Tensor& x,
                             const at::Tensor& weight, const at::Tensor& rstd,
                             const at::Tensor& x_gradient, const at::Tensor& weight_gradient);

}  // namespace troupe
