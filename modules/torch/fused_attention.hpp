// Attention by kernels of the library, which never make all scores.
#pragma once

#include <cstdint>
#include <torch/types.h>
#include <vector>

#include "modules/torch/attention.hpp"

namespace troupe {

/// Whether the library has such a kernel for rows like `qkv`.
bool HasFusedAttention(const at::Tensor& qkv, const AttentionPlan& plan);
/// Whether it has one that gives the logarithms of its sums, for heads of `options`: FlashForward.
bool HasFlashAttention(const at::TensorOptions& options, std::int64_t head_dim);
/// The plan of one sample or more that share rows, for such heads. `like` has the heads, and the tables
/// of all positions.
AttentionPlanPtr PackPlan(const std::vector<std::int64_t>& lengths, const AttentionPlan& like);

/// As Attention.
at::Tensor FusedAttention(const at::Tensor& qkv, const AttentionPlanPtr& plan);

}  // namespace troupe
