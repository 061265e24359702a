#include "modules/torch/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "modules/torch/autograd.hpp"
#include "modules/torch/portable_attention.hpp"
#include "modules/torch/row_kernels.hpp"
#include "modules/torch/versions.hpp"

namespace troupe {
namespace {

/// Finite, so that no inf - inf can arise; its exponential is 0 all the same.
constexpr double kMasked = -1e30;

enum class Part { kQuery, kKey, kValue };

HeadColumns ColumnsOf(const AttentionPlan& plan, Part part) {
  HeadColumns columns{plan.sequences, plan.length,  plan.row_width(), 0,
                      plan.kv_heads,  plan.head_dim};
  if (part == Part::kQuery) columns.heads = plan.heads;
  if (part == Part::kKey) columns.first_column = plan.heads * plan.head_dim;
  if (part == Part::kValue) columns.first_column = (plan.heads + plan.kv_heads) * plan.head_dim;
  return columns;
}

/// The attention output as heads inside rows of [sequences * length, heads * head_dim].
HeadColumns OutputColumns(const AttentionPlan& plan) {
  return {plan.sequences, plan.length, plan.heads * plan.head_dim, 0, plan.heads, plan.head_dim};
}

template <class T>
Rotation<T> RotationOf(const AttentionPlan& plan, Part part) {
  if (part == Part::kValue || !plan.cosine.defined()) return {};
  return {plan.cosine.data_ptr<T>(), plan.sine.data_ptr<T>()};
}

/// q carries the 1 / sqrt(head_dim) of the scores.
double ScaleOf(const AttentionPlan& plan, Part part) {
  return part == Part::kQuery ? 1.0 / std::sqrt(static_cast<double>(plan.head_dim)) : 1.0;
}

/// Rows to heads [sequences * kv_heads, heads per kv head * length, head_dim]: the query heads that
/// share a key head are contiguous, so one product serves them and nothing is repeated.
at::Tensor Gather(const at::Tensor& rows, const AttentionPlan& plan, const HeadColumns& columns,
                  Part part) {
  at::Tensor heads = at::empty(
      {plan.sequences * plan.kv_heads, columns.heads / plan.kv_heads * plan.length, plan.head_dim},
      rows.options());
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "Attention", [&] {
    GatherHeads(rows.data_ptr<scalar_t>(), columns, RotationOf<scalar_t>(plan, part),
                static_cast<scalar_t>(ScaleOf(plan, part)), heads.data_ptr<scalar_t>());
  });
  return heads;
}

void Scatter(const at::Tensor& heads, const AttentionPlan& plan, const HeadColumns& columns,
             Part part, at::Tensor& rows) {
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "Attention", [&] {
    ScatterHeads(heads.data_ptr<scalar_t>(), columns, RotationOf<scalar_t>(plan, part),
                 static_cast<scalar_t>(ScaleOf(plan, part)), rows.data_ptr<scalar_t>());
  });
}

/// softmax(q k^T) with the plan's mask, [sequences * kv_heads, heads per kv head * length, length].
at::Tensor Weights(const at::Tensor& q, const at::Tensor& k, const AttentionPlan& plan) {
  at::Tensor weights;
  if (plan.mask.defined()) {
    const std::int64_t length = plan.length;
    weights = at::empty({q.size(0), q.size(1), length}, q.options());
    weights.view({q.size(0), plan.heads / plan.kv_heads, length, length}).copy_(plan.mask);
    weights.baddbmm_(q, k.transpose(1, 2));
  } else {
    weights = at::bmm(q, k.transpose(1, 2));
  }
  return at::_softmax_out(weights, weights, -1, false);
}

/// What the gradients of an attention are made of.
struct Heads {
  at::Tensor q, k, v;
  at::Tensor weights;
};

Heads HeadsOf(const at::Tensor& qkv, const AttentionPlan& plan) {
  Heads heads;
  heads.q = Gather(qkv, plan, ColumnsOf(plan, Part::kQuery), Part::kQuery);
  heads.k = Gather(qkv, plan, ColumnsOf(plan, Part::kKey), Part::kKey);
  heads.v = Gather(qkv, plan, ColumnsOf(plan, Part::kValue), Part::kValue);
  heads.weights = Weights(heads.q, heads.k, plan);
  return heads;
}

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

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const AttentionPlanPtr& plan) {
    const Heads heads = HeadsOf(qkv, *plan);
    at::Tensor output = at::empty({qkv.size(0), plan->heads * plan->head_dim}, qkv.options());
    Scatter(at::bmm(heads.weights, heads.v), *plan, OutputColumns(*plan), Part::kValue, output);
    if (plan->recompute) {
      context->save_for_backward({qkv});
    } else {
      context->save_for_backward({heads.q, heads.k, heads.v, heads.weights});
    }
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto plan = Held<AttentionPlan>(context, "plan");
    const variable_list saved = context->get_saved_variables();
    const auto [q, k, v, weights] =
        plan->recompute ? HeadsOf(saved[0], *plan) : Heads{saved[0], saved[1], saved[2], saved[3]};
    const at::Tensor rows = gradients[0].contiguous();
    const at::Tensor output_gradient = Gather(rows, *plan, OutputColumns(*plan), Part::kValue);
    at::Tensor scores_gradient = at::bmm(output_gradient, v.transpose(1, 2));
    at::_softmax_backward_data_out(scores_gradient, scores_gradient, weights, -1,
                                   weights.scalar_type());
    at::Tensor qkv_gradient = at::empty({rows.size(0), plan->row_width()}, rows.options());
    const auto scatter = [&](const at::Tensor& heads, Part part) {
      Scatter(heads, *plan, ColumnsOf(*plan, part), part, qkv_gradient);
    };
    scatter(at::bmm(scores_gradient, k), Part::kQuery);
    scatter(at::bmm(scores_gradient.transpose(1, 2), q), Part::kKey);
    scatter(at::bmm(weights.transpose(1, 2), output_gradient), Part::kValue);
    return {qkv_gradient, {}};
  }
};

}  // namespace

at::Tensor Attention(const at::Tensor& qkv, const AttentionPlanPtr& plan) {
  return plan->portable ? PortableAttention(qkv, plan)
                        : AttentionFunction::apply(qkv.contiguous(), plan);
}

void SetCausal(AttentionPlan& plan, const at::TensorOptions& options) {
  plan.causal = true;
  if (plan.portable && kHasFusedAttention) return;  // which makes its own
  plan.mask = at::full({plan.length, plan.length}, kMasked, options).triu_(1);
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
