// Attention by one kernel of the library, which never makes all scores.
#pragma once

#include "modules/torch/attention.hpp"

namespace troupe {

/// Whether the library has such a kernel for rows like `qkv`.
bool HasFusedAttention(const at::Tensor& qkv, const AttentionPlan& plan);

/// As Attention.
at::Tensor FusedAttention(const at::Tensor& qkv, const AttentionPlanPtr& plan);

}  // namespace troupe
