// Rows of attention to heads and back, with their rotary embedding.
#pragma once

#include <torch/types.h>

#include "modules/torch/attention.hpp"

namespace troupe {

/// The heads of all sequences: B = kv_heads * sequences. The query heads that share a key head,
/// `shared` of them, are neighbouring rows, so one product serves them. In float32 at least, or in the
/// type of their rows where FlashForward takes it.
struct AttentionHeads {
  at::Tensor q;  ///< [B, length * shared, D], row t * shared + j is head j of token t
  at::Tensor k;  ///< [B, length, D]
  at::Tensor v;  ///< [B, length, D]
};

/// The type of sums over values of `type`: float32 at least.
at::ScalarType WideType(at::ScalarType type);

/// Turns the first half of heads [sequences, length, h, D] against the second by the angles of the
/// plan's tables, or back by them (`direction` -1), into `to` of the same shape.
void TurnHeads(const at::Tensor& heads, const AttentionPlan& plan, double direction,
               const at::Tensor& to);

/// The heads of rows `qkv` [sequences * length, row_width]: q and k turned where the plan has
/// tables, and q scaled by 1 / sqrt(D), so that scores need no scale.
AttentionHeads HeadsOf(const at::Tensor& qkv, const AttentionPlan& plan);
/// Its q alone.
at::Tensor QueryHeads(const at::Tensor& qkv, const AttentionPlan& plan);
/// Its k and v alone, of rows [sequences * length, 2 * kv_heads * D] that have no others.
struct KeyValues {
  at::Tensor k;
  at::Tensor v;
};
KeyValues KeyValueHeads(const at::Tensor& rows, const AttentionPlan& plan);
/// The transposes of these, into such rows. The rows of keys and values are of the heads' type.
void PutQueryGradients(const at::Tensor& gradients, const AttentionPlan& plan,
                       const at::Tensor& qkv);
void PutKeyValueGradients(const KeyValues& gradients, const AttentionPlan& plan,
                          const at::Tensor& rows);

/// The transpose of HeadsOf: gradients of heads to those of rows of `type`.
at::Tensor RowGradients(const AttentionHeads& gradients, const AttentionPlan& plan,
                        at::ScalarType type);

/// Outputs [sequences * length, heads * D] as q is laid out.
at::Tensor OutputHeads(const at::Tensor& rows, const AttentionPlan& plan);
/// What the backward needs of the outputs of some rows of q.
struct OutputGradients {
  at::Tensor log_sums;     ///< [B, rows of q]: log of the sum of exponentials of a row's scores
  at::Tensor gradient;     ///< as q
  at::Tensor dots = {};    ///< [B, rows of q]: sums over D of the output times its gradient
  at::Tensor output = {};  ///< as q, of FlashForward; else undefined

  OutputGradients Rows(std::int64_t first, std::int64_t count) const;
};
/// `outputs` and their `gradients` as rows, like OutputHeads.
OutputGradients OutputGradientsOf(const at::Tensor& log_sums, const at::Tensor& outputs,
                                  const at::Tensor& gradients, const AttentionPlan& plan);
/// The inverse of OutputHeads, in `type`.
at::Tensor OutputRows(const at::Tensor& heads, const AttentionPlan& plan, at::ScalarType type);
/// The same, into `rows`.
void PutOutputs(const at::Tensor& heads, const AttentionPlan& plan, const at::Tensor& rows);

}  // namespace troupe
