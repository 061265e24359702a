// Attention one block of scores at a time, forward and backward: no tensor of length * length. Where the
// library has a kernel for the heads (HasFlashAttention), it computes in place of the blocks.
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
  at::Tensor heads;     ///< as q, in float32 at least
  at::Tensor log_sums;  ///< [B, rows of q]: log of the sum of exponentials of a row's scores
};

/// Attention of some rows to keys that come in several parts.
class RunningAttention {
 public:
  explicit RunningAttention(const at::Tensor& q);
  /// Rows [first, first + count) of q see the keys k, v [B, keys, D], too. With plan.causal the first
  /// of these rows is at the first of the keys.
  void See(std::int64_t first, std::int64_t count, const at::Tensor& k, const at::Tensor& v,
           const BlockPlan& plan);
  /// Every row must have seen a key. Called once.
  AttentionOutput Finish();

 private:
  at::Tensor q_;
  at::Tensor maxima_;  ///< [B, rows]: of the scores so far
  at::Tensor sums_;    ///< [B, rows]: of their exponentials less the maximum
  at::Tensor out_;     ///< as q, to be divided by the sums
};

AttentionOutput AttendInBlocks(const AttentionHeads& heads, const BlockPlan& plan);

/// Adds to `sums`, which are of ZeroSums, the gradients of q, k and v. These keys may be a part of
/// those of the output.
void AddAttentionGradients(const AttentionHeads& heads, const OutputGradients& output,
                           const BlockPlan& plan, const AttentionHeads& sums);

/// Zeros of the shape of some heads, in float32 at least.
at::Tensor ZeroSums(const at::Tensor& heads);

}  // namespace troupe
