#pragma once

#include <torch/types.h>

#include "modules/torch/numerics.hpp"

namespace troupe {

/// x * weight / sqrt(mean(x^2) + epsilon) over the rows of x [M, H]; the portable code computes in
/// the type of the state and rounds the result to x's. The gradient of weight is added to its
/// .grad, which must be preset when it trains.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                   const Numerics& numerics);

}  // namespace troupe
