// Both ends of a language model whose vocabulary is cut over a tensor-parallel group.
#pragma once

#include <cstdint>
#include <torch/types.h>

#include "modules/torch/tensor_group.hpp"

namespace troupe {

/// One rank's rows of an embedding or head.
struct VocabularyPart {
  at::Tensor weight;          ///< [V of this rank, H], a leaf
  std::int64_t first_id = 0;  ///< token of its row 0
};

/// Rows of the whole embedding for `tokens` [M] int64; returns [M, H], or where the group cuts rows the
/// own part of them (sequence_rows.hpp). The gradient is added to the part's .grad, touching only the
/// rows looked up.
at::Tensor Embed(const at::Tensor& tokens, const VocabularyPart& part, const TensorGroupPtr& group);

/// The outcome of the predictions of M rows, on their device; the same on every rank.
struct Predictions {
  at::Tensor losses;  ///< [M] float64, nats
  /// [M] float64: 1 where the label is the most probable token (the first of equals), else 0
  at::Tensor correct;
};

/// Sum over rows of the cross-entropy of softmax(x W^T) against `labels` [M] int64, all of them
/// valid tokens. `x` [M, H]; returns a scalar in the type of losses (float32 where x is shorter)
/// and fills `predictions`. The head's product belongs to it: logits are made for a few rows at a
/// time, in the forward and again in the backward, and never kept. Where the group cuts rows, the
/// gradient of x is this rank's part of a sum.
at::Tensor VocabularyLoss(const at::Tensor& x, const VocabularyPart& part, const at::Tensor& labels,
                          const TensorGroupPtr& group, Predictions& predictions);

}  // namespace troupe
