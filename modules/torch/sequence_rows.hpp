// Rows that are cut over the ranks of a tensor-parallel group (sequence parallel, arXiv:2205.05198).
// Of M rows, rank r of n has [r m, (r + 1) m) with m = M / n rounded up. Rows past the end are zero.
#pragma once

#include <cstdint>
#include <torch/types.h>
#include <vector>

#include "modules/torch/tensor_group.hpp"

namespace troupe {

/// All rows [M, ...], from `own` [m, ...] of every rank.
at::Tensor GatherRows(const TensorGroup& group, const at::Tensor& own, std::int64_t num_rows);
/// This rank's rows [m, ...] of the sum of x [M, ...] over the ranks.
at::Tensor SumToOwnRows(const TensorGroup& group, const at::Tensor& x);
/// This rank's rows [m, ...] of x [M, ...], which all ranks have.
at::Tensor OwnRows(const TensorGroup& group, const at::Tensor& x);

/// OwnRows as a node: its gradient is that of all rows, on every rank.
at::Tensor CutRows(const at::Tensor& x, const TensorGroupPtr& group);
/// GatherRows as a node. The gradient that it gets is the same on every rank.
at::Tensor JoinRows(const at::Tensor& own, std::int64_t num_rows, const TensorGroupPtr& group);

/// x, which all ranks have and of which each uses some rows: its gradient is summed over the ranks.
at::Tensor SharedRows(const at::Tensor& x, const TensorGroupPtr& group);
/// All rows, from `own` [counts[rank], ...] of every rank, in the order of ranks. The gradient that it gets
/// on a rank is a part of a sum over the ranks.
at::Tensor GatherParts(const at::Tensor& own, const std::vector<std::int64_t>& counts,
                       const TensorGroupPtr& group);

}  // namespace troupe
