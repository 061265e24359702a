// Multi-head attention of the heads that one rank holds.
#pragma once

#include <cstdint>
#include <functional>
#include <torch/types.h>
#include <utility>

#include "kinds/llama.hpp"

namespace troupe {

/// The score of a key that a row must not see. Finite, so that no inf - inf can arise; its
/// exponential is 0 all the same.
inline constexpr double kHiddenScore = -1e30;

/// What all attention layers of one pass share. Held by the graph.
struct AttentionPlan : torch::CustomClassHolder {
  std::int64_t sequences = 0;
  std::int64_t length = 0;    ///< tokens per sequence
  std::int64_t heads = 0;     ///< query heads on this rank
  std::int64_t kv_heads = 0;  ///< divides heads; head h reads kv head h / (heads / kv_heads)
  std::int64_t head_dim = 0;
  bool causal = false;  ///< later tokens are hidden from earlier ones
  at::Tensor cosine;    ///< [>= length, head_dim / 2], or undefined: no rotary embedding
  at::Tensor sine;
  bool portable = false;     ///< Numerics::portable
  at::Tensor ends;           ///< of PackedFlash, in rows of several samples; undefined: no packs
  std::int64_t longest = 0;  ///< tokens of a sample of `ends`

  std::int64_t shared() const { return heads / kv_heads; }
  std::int64_t row_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

using AttentionPlanPtr = c10::intrusive_ptr<AttentionPlan>;

/// Rows q, k, v of some tokens to the rows of their heads.
using AttendFunction = std::function<at::Tensor(const at::Tensor& qkv)>;

/// softmax(q k^T / sqrt(head_dim)) v. `qkv` [sequences * length, (heads + 2 kv_heads) * head_dim]
/// is all q heads, then all k, then all v; returns [sequences * length, heads * head_dim].
at::Tensor Attention(const at::Tensor& qkv, const AttentionPlanPtr& plan);

/// The tables of a rotary embedding: cosine and sine of t * f(base^(-2 i / head_dim)), each
/// [length, head_dim / 2], computed in double on the host.
std::pair<at::Tensor, at::Tensor> RotaryTables(std::int64_t length, std::int64_t head_dim,
                                               const RotaryConfig& rope,
                                               const at::TensorOptions& options);

}  // namespace troupe
