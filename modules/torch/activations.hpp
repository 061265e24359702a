// Activation functions that keep their input and nothing else for the backward pass.
#pragma once

#include <torch/types.h>

namespace troupe {

/// x * sigmoid(1.702 x), elementwise: CLIP's activation.
at::Tensor QuickGelu(const at::Tensor& x);

/// silu(gate) * up, where x [M, 2 F] is gate and up side by side; returns [M, F].
at::Tensor SwiGlu(const at::Tensor& x);

}  // namespace troupe
