// Attention one block of scores at a time, forward and backward: no tensor of length * length.
#pragma once

#include <torch/types.h>

#include "modules/torch/attention_heads.hpp"

namespace troupe {

/// Which keys a row of q sees, and how the blocks are computed.
struct BlockPlan {
  std::int64_t shared = 1;  ///< rows of q per token
  bool causal = false;      ///< row r sees keys [0, r / shared], else all
  bool portable = false;    ///< operations of the library only: Numerics::portable
};

/// softmax(q k^T) v, and the sums that its backward needs.
struct AttentionOutput {
  at::Tensor heads;     ///< as q
  at::Tensor log_sums;  ///< [B, rows of q]: log of the sum of exponentials of a row's scores
};

AttentionOutput AttendInBlocks(const AttentionHeads& heads, const BlockPlan& plan);

/// Gradients of q, k and v. `gradient` is that of the output, as q; `dots` [B, rows of q] are the
/// sums over D of the output times its gradient.
AttentionHeads AttendInBlocksGradients(const AttentionHeads& heads, const at::Tensor& log_sums,
                                       const at::Tensor& gradient, const at::Tensor& dots,
                                       const BlockPlan& plan);

}  // namespace troupe
