// Attention of the library's operations, for any device and type.
#pragma once

#include <torch/types.h>

#include "modules/torch/attention.hpp"

namespace troupe {

/// As Attention. Scores and rotations are computed in the type of the plan's tables, or in float32
/// where it has none and the rows are shorter.
at::Tensor PortableAttention(const at::Tensor& qkv, const AttentionPlanPtr& plan);

}  // namespace troupe
