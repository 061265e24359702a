#include "modules/torch/portable_attention.hpp"

#include <ATen/core/grad_mode.h>
#include <cmath>

#include "modules/torch/autograd.hpp"
#include "modules/torch/recompute.hpp"
#include "modules/torch/versions.hpp"

namespace troupe {
namespace {

/// Heads [S, L, h, D] whose first half is turned against the second by the tables' angles, or back
/// by them (`direction` -1), into `to` of the same shape.
void Turn(const at::Tensor& heads, const AttentionPlan& plan, double direction,
          const at::Tensor& to) {
  const std::int64_t half = plan.head_dim / 2;
  const at::Tensor cosine = plan.cosine.narrow(0, 0, plan.length).unsqueeze(1);
  const at::Tensor sine = plan.sine.narrow(0, 0, plan.length).unsqueeze(1);
  const at::Tensor first = heads.narrow(3, 0, half);
  const at::Tensor second = heads.narrow(3, half, half);
  // A product with the tables has their type: only the result is rounded to that of the heads.
  to.narrow(3, 0, half).copy_((first * cosine).addcmul_(second, sine, -direction));
  to.narrow(3, half, half).copy_((second * cosine).addcmul_(first, sine, direction));
}

/// Rows of all heads as [S, L, heads, D].
at::Tensor AsHeads(const at::Tensor& rows, const AttentionPlan& plan) {
  return rows.view({plan.sequences, plan.length, rows.size(1) / plan.head_dim, plan.head_dim});
}

/// The same of q, k and v, each [S, heads of it, L, D].
struct Split {
  at::Tensor q, k, v;
};

Split SplitHeads(const at::Tensor& heads, const at::Tensor& turned, const AttentionPlan& plan) {
  const auto part = [](const at::Tensor& of, std::int64_t begin, std::int64_t count) {
    return of.narrow(2, begin, count).transpose(1, 2);
  };
  return {part(turned, 0, plan.heads), part(turned, plan.heads, plan.kv_heads),
          part(heads, plan.heads + plan.kv_heads, plan.kv_heads)};
}

/// qkv [S * L, row_width] to q and k, turned where the plan says so, and v. One node: the gradients
/// of all three are written into one tensor.
struct SplitFunction : torch::autograd::Function<SplitFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& qkv,
                               const AttentionPlanPtr& plan) {
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    const at::Tensor heads = AsHeads(qkv, *plan);
    const at::Tensor query_keys = heads.narrow(2, 0, plan->heads + plan->kv_heads);
    at::Tensor turned = query_keys;
    if (plan->cosine.defined()) {
      turned = at::empty(query_keys.sizes(), query_keys.options());
      Turn(query_keys, *plan, 1, turned);
    }
    const Split split = SplitHeads(heads, turned, *plan);
    return {split.q, split.k, split.v};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto plan = Held<AttentionPlan>(context, "plan");
    const at::Tensor& q = gradients[0];
    const at::Tensor gradient =
        at::empty({plan->sequences * plan->length, plan->row_width()}, q.options());
    const at::Tensor heads = AsHeads(gradient, *plan);
    const Split split = SplitHeads(heads, heads, *plan);
    const auto turn_back = [&](const at::Tensor& from, const at::Tensor& to) {
      if (plan->cosine.defined()) {
        Turn(from.transpose(1, 2), *plan, -1, to.transpose(1, 2));
      } else {
        to.copy_(from);
      }
    };
    turn_back(q, split.q);
    turn_back(gradients[1], split.k);
    split.v.copy_(gradients[2]);
    return {gradient, {}};
  }
};

/// softmax(q k^T / sqrt(D)) v of q [S, heads, L, D] and k, v [S, kv_heads, L, D], step by step.
at::Tensor Composed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const AttentionPlan& plan) {
  // The query heads of a key head are contiguous: one product serves them.
  const std::int64_t shared = plan.heads / plan.kv_heads;
  const at::ScalarType type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor queries =
      q.reshape({plan.sequences, plan.kv_heads, shared * plan.length, plan.head_dim}).to(type);
  at::Tensor scores = at::matmul(queries / std::sqrt(static_cast<double>(plan.head_dim)),
                                 k.to(type).transpose(2, 3));
  if (plan.mask.defined()) {
    scores =
        scores.view({plan.sequences, plan.kv_heads, shared, plan.length, plan.length}) + plan.mask;
    scores = scores.view({plan.sequences, plan.kv_heads, shared * plan.length, plan.length});
  }
  return at::matmul(at::softmax(scores, -1), v.to(type)).to(q.scalar_type()).view(q.sizes());
}

at::Tensor Attend(const at::Tensor& qkv, const AttentionPlanPtr& plan) {
  const variable_list split = SplitFunction::apply(qkv, plan);
  // A fused kernel need not support zero sequences.
  const bool fused = kHasFusedAttention && plan->sequences > 0;
  const at::Tensor heads = fused ? FusedAttention(split[0], split[1], split[2], plan->causal)
                                 : Composed(split[0], split[1], split[2], *plan);
  return heads.transpose(1, 2).reshape({qkv.size(0), plan->heads * plan->head_dim});
}

}  // namespace

at::Tensor PortableAttention(const at::Tensor& qkv, const AttentionPlanPtr& plan) {
  const auto attend = [plan](const at::Tensor& rows) { return Attend(rows, plan); };
  return plan->recompute ? Recomputed(qkv, qkv, attend) : attend(qkv);
}

}  // namespace troupe
