#include "modules/torch/fused_attention.hpp"

#include <algorithm>

#include "modules/torch/attention_heads.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/versions.hpp"

namespace troupe {
namespace {

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
      TurnHeads(query_keys, *plan, 1, turned);
    }
    const Split split = SplitHeads(heads, turned, *plan);
    // The kernel keeps v: a view would keep q and k once more.
    return {split.q, split.k, split.v.contiguous()};
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
        TurnHeads(from.transpose(1, 2), *plan, -1, to.transpose(1, 2));
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

}  // namespace

bool HasFusedAttention(const at::Tensor& qkv, const AttentionPlan& plan) {
  if (!kHasFusedAttention || !plan.portable || plan.sequences == 0) return false;
  // Where no kernel fits, the library makes all scores. Many versions have none for key heads that
  // are shared, but for bfloat16 on a GPU, and none on a GPU has float64.
  const bool short_on_gpu = qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16;
  const bool long_on_gpu = qkv.is_cuda() && qkv.scalar_type() == at::kDouble;
  return short_on_gpu || (plan.shared() == 1 && !long_on_gpu);
}

bool HasFlashAttention(const at::TensorOptions& options, std::int64_t head_dim) {
  return kHasFusedAttention && options.device().is_cuda() && options.dtype() == at::kBFloat16 &&
         head_dim % 8 == 0 && head_dim <= 256;
}

AttentionPlanPtr PackPlan(const std::vector<std::int64_t>& lengths, const AttentionPlan& like) {
  auto plan = c10::make_intrusive<AttentionPlan>(like);
  plan->sequences = 1;
  plan->length = 0;
  std::vector<std::int32_t> ends = {0};
  std::vector<at::Tensor> cosines;
  std::vector<at::Tensor> sines;
  for (const std::int64_t length : lengths) {
    plan->length += length;
    plan->longest = std::max(plan->longest, length);
    ends.push_back(static_cast<std::int32_t>(plan->length));
    cosines.push_back(like.cosine.narrow(0, 0, length));
    sines.push_back(like.sine.narrow(0, 0, length));
  }
  plan->cosine = at::cat(cosines);
  plan->sine = at::cat(sines);
  plan->ends = Upload(at::tensor(ends, at::kInt), like.cosine.device());
  return plan;
}

at::Tensor FusedAttention(const at::Tensor& qkv, const AttentionPlanPtr& plan) {
  const variable_list split = SplitFunction::apply(qkv, plan);
  at::Tensor output;
  if (plan->ends.defined()) {
    const auto rows = [](const at::Tensor& of) { return of.squeeze(0).transpose(0, 1); };
    output = PackedFlash(rows(split[0]), rows(split[1]), rows(split[2]), plan->ends, plan->longest);
  } else {
    output = FusedKernel(split[0], split[1], split[2], plan->causal).transpose(1, 2);
  }
  NoteKept({split[0], split[1], split[2], output});
  return output.reshape({qkv.size(0), plan->heads * plan->head_dim});
}

}  // namespace troupe
