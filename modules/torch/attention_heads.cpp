#include "modules/torch/attention_heads.hpp"

#include <cmath>

#include "modules/torch/cuda/kernels.hpp"
#include "modules/torch/fused_attention.hpp"
#include "modules/torch/row_kernels.hpp"

namespace troupe {
namespace {

/// Where some heads are in rows, and what is done to them on their way.
struct Part {
  HeadColumns columns;
  bool turns = false;
  double scale = 1.0;
};

Part SomeHeads(const AttentionPlan& plan, std::int64_t row_width, std::int64_t first_head,
               std::int64_t heads) {
  Part part;
  part.columns = {.sequences = plan.sequences,
                  .length = plan.length,
                  .row_width = row_width,
                  .first_column = first_head * plan.head_dim,
                  .heads = heads,
                  .shared = heads / plan.kv_heads,
                  .head_dim = plan.head_dim};
  return part;
}

Part Queries(const AttentionPlan& plan) {
  Part part = SomeHeads(plan, plan.row_width(), 0, plan.heads);
  part.turns = plan.cosine.defined();
  part.scale = 1.0 / std::sqrt(static_cast<double>(plan.head_dim));
  return part;
}

/// Of rows that have `before` heads before the keys.
Part Keys(const AttentionPlan& plan, std::int64_t before) {
  const std::int64_t width = (before + 2 * plan.kv_heads) * plan.head_dim;
  Part part = SomeHeads(plan, width, before, plan.kv_heads);
  part.turns = plan.cosine.defined();
  return part;
}

Part Values(const AttentionPlan& plan, std::int64_t before) {
  const std::int64_t width = (before + 2 * plan.kv_heads) * plan.head_dim;
  return SomeHeads(plan, width, before + plan.kv_heads, plan.kv_heads);
}

Part Outputs(const AttentionPlan& plan) {
  return SomeHeads(plan, plan.heads * plan.head_dim, 0, plan.heads);
}

template <class T>
Rotation<T> RotationOf(const AttentionPlan& plan, const Part& part) {
  if (!part.turns) return {};
  return {plan.cosine.data_ptr<T>(), plan.sine.data_ptr<T>()};
}

at::ScalarType HeadsType(const at::Tensor& rows, const AttentionPlan& plan) {
  return HasFlashAttention(rows.options(), plan.head_dim) ? rows.scalar_type()
                                                          : WideType(rows.scalar_type());
}

/// The columns of a part as [S, L, heads, D], a view.
at::Tensor ColumnsOf(const at::Tensor& rows, const HeadColumns& columns) {
  return rows.narrow(1, columns.first_column, columns.heads * columns.head_dim)
      .view({columns.sequences, columns.length, columns.heads, columns.head_dim});
}

at::Tensor Gather(const at::Tensor& rows, const AttentionPlan& plan, const Part& part) {
  const HeadColumns& c = part.columns;
  if (plan.portable) {
    at::Tensor heads = ColumnsOf(rows, c);
    if (part.turns || part.scale != 1.0) heads = heads.to(WideType(rows.scalar_type()));
    if (part.turns) {
      const at::Tensor turned = at::empty_like(heads);
      TurnHeads(heads, plan, 1, turned);
      heads = turned;
    }
    if (part.scale != 1.0) heads = heads * part.scale;
    return heads.to(HeadsType(rows, plan))
        .reshape({c.sequences * c.length, plan.kv_heads, c.shared, c.head_dim})
        .transpose(0, 1)
        .reshape({plan.kv_heads * c.sequences, c.length * c.shared, c.head_dim});
  }
  at::Tensor heads =
      at::empty({plan.kv_heads * c.sequences, c.length * c.shared, c.head_dim}, rows.options());
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "Attention", [&] {
    GatherHeads(rows.data_ptr<scalar_t>(), c, RotationOf<scalar_t>(plan, part),
                static_cast<scalar_t>(part.scale), heads.data_ptr<scalar_t>());
  });
  return heads;
}

void Scatter(const at::Tensor& heads, const AttentionPlan& plan, const Part& part,
             const at::Tensor& rows) {
  const HeadColumns& c = part.columns;
  if (plan.portable) {
    at::Tensor back = heads.view({plan.kv_heads, c.sequences * c.length, c.shared, c.head_dim})
                          .transpose(0, 1)
                          .reshape({c.sequences, c.length, c.heads, c.head_dim});
    if (part.scale != 1.0) back = back * part.scale;
    if (part.turns) {
      TurnHeads(back, plan, -1, ColumnsOf(rows, c));
    } else {
      ColumnsOf(rows, c).copy_(back);
    }
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "Attention", [&] {
    ScatterHeads(heads.data_ptr<scalar_t>(), c, RotationOf<scalar_t>(plan, part),
                 static_cast<scalar_t>(part.scale), rows.data_ptr<scalar_t>());
  });
}

}  // namespace

at::ScalarType WideType(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

void TurnHeads(const at::Tensor& heads, const AttentionPlan& plan, double direction,
               const at::Tensor& to) {
  if (HasDeviceTurn(heads, to, plan.cosine)) {
    TurnHeadsOnDevice(heads, plan.cosine, plan.sine, direction, to);
    return;
  }
  const std::int64_t half = plan.head_dim / 2;
  const at::Tensor cosine = plan.cosine.narrow(0, 0, plan.length).unsqueeze(1);
  const at::Tensor sine = plan.sine.narrow(0, 0, plan.length).unsqueeze(1);
  const at::Tensor first = heads.narrow(3, 0, half);
  const at::Tensor second = heads.narrow(3, half, half);
  // A product with the tables has their type: only the result is rounded to that of the heads.
  to.narrow(3, 0, half).copy_((first * cosine).addcmul_(second, sine, -direction));
  to.narrow(3, half, half).copy_((second * cosine).addcmul_(first, sine, direction));
}

AttentionHeads HeadsOf(const at::Tensor& qkv, const AttentionPlan& plan) {
  return {QueryHeads(qkv, plan), Gather(qkv, plan, Keys(plan, plan.heads)),
          Gather(qkv, plan, Values(plan, plan.heads))};
}

at::Tensor QueryHeads(const at::Tensor& qkv, const AttentionPlan& plan) {
  return Gather(qkv, plan, Queries(plan));
}

KeyValues KeyValueHeads(const at::Tensor& rows, const AttentionPlan& plan) {
  return {Gather(rows, plan, Keys(plan, 0)), Gather(rows, plan, Values(plan, 0))};
}

void PutQueryGradients(const at::Tensor& gradients, const AttentionPlan& plan,
                       const at::Tensor& qkv) {
  Scatter(gradients, plan, Queries(plan), qkv);
}

void PutKeyValueGradients(const KeyValues& gradients, const AttentionPlan& plan,
                          const at::Tensor& rows) {
  Scatter(gradients.k, plan, Keys(plan, 0), rows);
  Scatter(gradients.v, plan, Values(plan, 0), rows);
}

at::Tensor RowGradients(const AttentionHeads& gradients, const AttentionPlan& plan,
                        at::ScalarType type) {
  const at::Tensor rows = at::empty({plan.sequences * plan.length, plan.row_width()},
                                    gradients.q.options().dtype(type));
  PutQueryGradients(gradients.q, plan, rows);
  Scatter(gradients.k, plan, Keys(plan, plan.heads), rows);
  Scatter(gradients.v, plan, Values(plan, plan.heads), rows);
  return rows;
}

at::Tensor OutputHeads(const at::Tensor& rows, const AttentionPlan& plan) {
  return Gather(rows, plan, Outputs(plan));
}

/// [B, length * shared].
static at::Tensor OutputDots(const at::Tensor& rows, const at::Tensor& gradients,
                             const AttentionPlan& plan) {
  const at::ScalarType type = WideType(rows.scalar_type());
  const at::Tensor products = rows.to(type) * gradients.to(type);
  return products.view({rows.size(0), plan.heads, plan.head_dim})
      .sum(2)
      .view({rows.size(0), plan.kv_heads, plan.shared()})
      .transpose(0, 1)
      .contiguous()
      .view({plan.kv_heads * plan.sequences, plan.length * plan.shared()});
}

OutputGradients OutputGradients::Rows(std::int64_t first, std::int64_t count) const {
  const auto rows = [=](const at::Tensor& of) {
    return of.defined() ? of.narrow(1, first, count) : of;
  };
  return {rows(log_sums), rows(gradient), rows(dots), rows(output)};
}

OutputGradients OutputGradientsOf(const at::Tensor& log_sums, const at::Tensor& outputs,
                                  const at::Tensor& gradients, const AttentionPlan& plan) {
  OutputGradients result{.log_sums = log_sums, .gradient = OutputHeads(gradients, plan)};
  // The kernel makes the sums itself.
  if (HasFlashAttention(outputs.options(), plan.head_dim)) {
    result.output = OutputHeads(outputs, plan);
  } else {
    result.dots = OutputDots(outputs, gradients, plan);
  }
  return result;
}

at::Tensor OutputRows(const at::Tensor& heads, const AttentionPlan& plan, at::ScalarType type) {
  const at::Tensor rows = at::empty({plan.sequences * plan.length, plan.heads * plan.head_dim},
                                    heads.options().dtype(type));
  PutOutputs(heads, plan, rows);
  return rows;
}

void PutOutputs(const at::Tensor& heads, const AttentionPlan& plan, const at::Tensor& rows) {
  Scatter(heads, plan, Outputs(plan), rows);
}

}  // namespace troupe
