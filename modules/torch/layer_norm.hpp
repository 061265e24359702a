#pragma once

#include <torch/types.h>

namespace troupe {

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over the rows of x [M, H]. The gradients
/// of weight and bias [H], which are of x's type, are added to their .grad, which must be preset
/// when they train and may be of a longer type.
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     double epsilon);

}  // namespace troupe
