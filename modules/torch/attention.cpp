#include "modules/torch/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "modules/torch/attention_blocks.hpp"
#include "modules/torch/attention_heads.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/fused_attention.hpp"

namespace troupe {
namespace {

/// Radians per token, after the scaling for a longer context.
double Scaled(double frequency, const RotaryConfig& rope) {
  if (rope.scaling == RopeScaling::kNone) return frequency;
  if (rope.scaling == RopeScaling::kLinear) return frequency / rope.factor;
  // The turns of the pair within the original context decide: 0 of the way to the low frequency
  // divides, 1 keeps.
  const double turns = frequency * static_cast<double>(rope.original_context) / (2.0 * M_PI);
  const double kept = std::clamp(
      (turns - rope.low_frequency) / (rope.high_frequency - rope.low_frequency), 0.0, 1.0);
  return kept * frequency + (1.0 - kept) * frequency / rope.factor;
}

BlockPlan BlocksOf(const AttentionPlan& plan) {
  return {.shared = plan.shared(), .causal = plan.causal, .portable = plan.portable};
}

/// Keeps the heads, the sums and the output, which is also what the next product keeps. Operations of
/// the library make heads that may be longer than rows, or views of them: then rows are kept.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const AttentionPlanPtr& plan) {
    const AttentionHeads heads = HeadsOf(qkv, *plan);
    const AttentionOutput output = AttendInBlocks(heads, BlocksOf(*plan));
    const at::Tensor rows = OutputRows(output.heads, *plan, qkv.scalar_type());
    if (plan->portable) {
      context->save_for_backward({qkv, {}, {}, output.log_sums, rows});
    } else {
      context->save_for_backward({heads.q, heads.k, heads.v, output.log_sums, rows});
    }
    NoteKept({plan->portable ? qkv : heads.q, heads.k, heads.v, output.log_sums, rows});
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    return rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto plan = Held<AttentionPlan>(context, "plan");
    const variable_list saved = context->get_saved_variables();
    const AttentionHeads heads = saved[1].defined() ? AttentionHeads{saved[0], saved[1], saved[2]}
                                                    : HeadsOf(saved[0], *plan);
    const at::Tensor rows = gradients[0].contiguous();
    const AttentionHeads sums = {ZeroSums(heads.q), ZeroSums(heads.k), ZeroSums(heads.v)};
    AddAttentionGradients(heads, OutputGradientsOf(saved[3], saved[4], rows, *plan),
                          BlocksOf(*plan), sums);
    return {RowGradients(sums, *plan, rows.scalar_type()), {}};
  }
};

}  // namespace

at::Tensor Attention(const at::Tensor& qkv, const AttentionPlanPtr& plan) {
  return HasFusedAttention(qkv, *plan) ? FusedAttention(qkv, plan)
                                       : AttentionFunction::apply(qkv.contiguous(), plan);
}

std::pair<at::Tensor, at::Tensor> RotaryTables(std::int64_t length, std::int64_t head_dim,
                                               const RotaryConfig& rope,
                                               const at::TensorOptions& options) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    frequencies.push_back(Scaled(std::pow(rope.base, exponent), rope));
  }
  at::Tensor angles = at::empty({length, head_dim / 2}, at::kDouble);
  double* angle = angles.data_ptr<double>();
  for (std::int64_t t = 0; t < length; ++t) {
    for (const double frequency : frequencies) *angle++ = static_cast<double>(t) * frequency;
  }
  return {angles.cos().to(options), angles.sin().to(options)};
}

}  // namespace troupe
