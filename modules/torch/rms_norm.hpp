#pragma once

#include <torch/types.h>

namespace troupe {

/// x * weight / sqrt(mean(x^2) + epsilon) over the rows of x [M, H]. The gradient of weight [H] is
/// added to its .grad, which must be preset when it trains.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

}  // namespace troupe
