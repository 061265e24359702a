#include "modules/torch/context_attention.hpp"

#include <utility>

#include "layout/row_table.hpp"
#include "modules/torch/attention_blocks.hpp"
#include "modules/torch/attention_heads.hpp"
#include "modules/torch/autograd.hpp"

namespace troupe {
namespace {

std::int64_t KeyValueWidth(const AttentionPlan& plan) { return 2 * plan.kv_heads * plan.head_dim; }

at::Tensor RowsIn(const at::Tensor& rows, const Interval& interval) {
  return rows.narrow(0, interval.begin, interval.size());
}

/// Some rows of q and some keys, which they see.
struct Pair {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  BlockPlan blocks;
};

/// The keys of `other` that `own` sees, both of one group of sequences.
Pair PairOf(const ContextPart& own, int own_rank, const ContextPart& other, int other_rank) {
  const std::int64_t shared = own.plan->shared();
  Pair pair{.rows = own.plan->length * shared,
            .keys = other.plan->length,
            .blocks = {.shared = shared, .portable = own.plan->portable}};
  if (!own.plan->causal) return pair;
  if (own_rank == other_rank) {
    pair.blocks.causal = true;
  } else if (other_rank < own_rank) {
    pair.keys = other.front;  // before both own chunks; the other is after both
  } else {
    pair.first_row = own.front * shared;  // the own back chunk is after both of the other's
    pair.rows -= pair.first_row;
  }
  return pair;
}

/// The queries of the own rows of a group.
at::Tensor QueriesIn(const at::Tensor& qkv, const ContextPart& own) {
  return QueryHeads(RowsIn(qkv, own.rows()), *own.plan);
}

struct ContextFunction : torch::autograd::Function<ContextFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const ContextPlanPtr& plan) {
    const int rank = plan->group->rank();
    std::vector<RunningAttention> running;
    for (const auto& group : plan->parts) {
      running.emplace_back(QueriesIn(qkv, group[static_cast<std::size_t>(rank)]));
    }
    plan->group->ForEach(
        OwnKeyValues(qkv, *plan), plan->counts,
        [&](int other, const at::Tensor& rows) { See(*plan, other, rows, running); });
    const at::Tensor out = at::empty({qkv.size(0), OutputWidth(*plan)}, qkv.options());
    variable_list saved = {qkv, out};
    for (std::size_t g = 0; g < running.size(); ++g) {
      const ContextPart& own = plan->parts[g][static_cast<std::size_t>(rank)];
      AttentionOutput output = running[g].Finish();
      PutOutputs(output.heads, *own.plan, RowsIn(out, own.rows()));
      saved.push_back(output.log_sums);
    }
    NoteKept(saved);
    context->save_for_backward(std::move(saved));
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto plan = Held<ContextPlan>(context, "plan");
    const auto rank = static_cast<std::size_t>(plan->group->rank());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const at::Tensor out_gradient = gradients[0].contiguous();
    std::vector<OwnGroup> groups;
    for (std::size_t g = 0; g < plan->parts.size(); ++g) {
      const ContextPart& own = plan->parts[g][rank];
      const at::Tensor gradient = RowsIn(out_gradient, own.rows());
      OwnGroup group{.q = QueriesIn(qkv, own),
                     .output = OutputGradientsOf(saved[2 + g], RowsIn(saved[1], own.rows()),
                                                 gradient, *own.plan)};
      group.q_gradient = ZeroSums(group.q);
      groups.push_back(std::move(group));
    }
    const std::int64_t width = KeyValueWidth(*plan->parts[0][rank].plan);
    ReturnedRows returned(*plan->group, plan->counts, width, qkv.options());
    plan->group->ForEach(OwnKeyValues(qkv, *plan), plan->counts,
                         [&](int other, const at::Tensor& rows) {
                           returned.Add(other, KeyValueGradients(*plan, other, rows, groups));
                         });
    const at::Tensor all = at::empty_like(qkv);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const ContextPart& own = plan->parts[g][rank];
      PutQueryGradients(groups[g].q_gradient, *own.plan, RowsIn(all, own.rows()));
    }
    all.narrow(1, all.size(1) - width, width).copy_(returned.Finish());
    return {all, {}};
  }

 private:
  /// Tensors of the own rows of a group, as heads.
  struct OwnGroup {
    at::Tensor q;
    OutputGradients output;
    at::Tensor q_gradient = {};
  };

  static std::int64_t OutputWidth(const ContextPlan& plan) {
    const AttentionPlan& any = *plan.parts[0][0].plan;
    return any.heads * any.head_dim;
  }

  static at::Tensor OwnKeyValues(const at::Tensor& qkv, const ContextPlan& plan) {
    const std::int64_t width = KeyValueWidth(*plan.parts[0][0].plan);
    return qkv.narrow(1, qkv.size(1) - width, width).contiguous();
  }

  /// The own rows see the keys and values `rows` of another rank.
  static void See(const ContextPlan& plan, int other_rank, const at::Tensor& rows,
                  std::vector<RunningAttention>& running) {
    const int own_rank = plan.group->rank();
    for (std::size_t g = 0; g < running.size(); ++g) {
      const ContextPart& own = plan.parts[g][static_cast<std::size_t>(own_rank)];
      const ContextPart& other = plan.parts[g][static_cast<std::size_t>(other_rank)];
      const Pair pair = PairOf(own, own_rank, other, other_rank);
      const auto [k, v] = KeyValueHeads(RowsIn(rows, other.rows()), *other.plan);
      running[g].See(pair.first_row, pair.rows, k.narrow(1, 0, pair.keys),
                     v.narrow(1, 0, pair.keys), pair.blocks);
    }
  }

  /// Adds to the gradients of q. Returns those of the keys and values `rows` of another rank, as far as
  /// they come from the own rows.
  static at::Tensor KeyValueGradients(const ContextPlan& plan, int other_rank,
                                      const at::Tensor& rows, const std::vector<OwnGroup>& groups) {
    const int own_rank = plan.group->rank();
    at::Tensor sums;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const OwnGroup& group = groups[g];
      const ContextPart& own = plan.parts[g][static_cast<std::size_t>(own_rank)];
      const ContextPart& other = plan.parts[g][static_cast<std::size_t>(other_rank)];
      const Pair pair = PairOf(own, own_rank, other, other_rank);
      const auto of_rows = [&pair](const at::Tensor& of) {
        return of.narrow(1, pair.first_row, pair.rows);
      };
      const auto of_keys = [&pair](const at::Tensor& of) { return of.narrow(1, 0, pair.keys); };
      const auto [k, v] = KeyValueHeads(RowsIn(rows, other.rows()), *other.plan);
      const KeyValues gradients{ZeroSums(k), ZeroSums(v)};
      AddAttentionGradients(
          {of_rows(group.q), of_keys(k), of_keys(v)}, group.output.Rows(pair.first_row, pair.rows),
          pair.blocks, {of_rows(group.q_gradient), of_keys(gradients.k), of_keys(gradients.v)});
      if (!sums.defined()) sums = at::empty(rows.sizes(), gradients.k.options());
      PutKeyValueGradients(gradients, *other.plan, RowsIn(sums, other.rows()));
    }
    return sums;
  }
};

/// The tables of positions in two chunks.
at::Tensor TableOf(const at::Tensor& table, const ContextChunks& chunks) {
  if (!table.defined()) return table;
  return at::cat({RowsIn(table, chunks.front), RowsIn(table, chunks.back)});
}

ContextPart& AddPart(const AttentionPlan& like, std::int64_t sequences, std::int64_t length,
                     std::size_t rank, std::vector<ContextPart>& ranks, ContextPlan& plan) {
  plan.counts.resize(static_cast<std::size_t>(plan.group->size()));
  ContextPart& part = ranks.emplace_back();
  part.plan = c10::make_intrusive<AttentionPlan>();
  part.plan->heads = like.heads;
  part.plan->kv_heads = like.kv_heads;
  part.plan->head_dim = like.head_dim;
  part.plan->causal = like.causal;
  part.plan->portable = like.portable;
  part.plan->sequences = sequences;
  part.plan->length = length;
  part.first_row = plan.counts[rank];
  plan.counts[rank] += sequences * length;
  return part;
}

}  // namespace

void AddFullGroup(std::int64_t sequences, const std::vector<std::int64_t>& tokens,
                  const AttentionPlan& like, ContextPlan& plan) {
  std::vector<ContextPart> ranks;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    AddPart(like, sequences, tokens[rank], rank, ranks, plan);
  }
  plan.parts.push_back(std::move(ranks));
}

void AddCausalGroup(std::int64_t sequences, std::int64_t length, const AttentionPlan& like,
                    ContextPlan& plan) {
  std::vector<ContextPart> ranks;
  for (int rank = 0; rank < plan.group->size(); ++rank) {
    const ContextChunks chunks = ChunksOf(length, plan.group->size(), rank);
    ContextPart& part =
        AddPart(like, sequences, chunks.size(), static_cast<std::size_t>(rank), ranks, plan);
    part.front = chunks.front.size();
    part.plan->cosine = TableOf(like.cosine, chunks);
    part.plan->sine = TableOf(like.sine, chunks);
  }
  plan.parts.push_back(std::move(ranks));
}

at::Tensor AttentionOverContext(const at::Tensor& qkv, const ContextPlanPtr& plan) {
  return ContextFunction::apply(qkv.contiguous(), plan);
}

}  // namespace troupe
