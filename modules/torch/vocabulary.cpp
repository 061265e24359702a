#include "modules/torch/vocabulary.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "kinds/work.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/products.hpp"
#include "modules/torch/sequence_rows.hpp"

namespace troupe {
namespace {

/// Where tokens of the whole vocabulary are in a rank's part [V, ...] of it.
struct Places {
  at::Tensor rows;     ///< [M] int64, in [0, V), whatever the token
  at::Tensor outside;  ///< [M] bool: the token is another rank's
};

Places Find(const at::Tensor& tokens, std::int64_t first_id, std::int64_t num_ids) {
  const at::Tensor rows = tokens - first_id;
  return {rows.clamp(0, num_ids - 1), rows.lt(0).logical_or_(rows.ge(num_ids))};
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight,
                            const at::Tensor& tokens, std::int64_t first_id,
                            const TensorGroupPtr& group) {
    const Places places = Find(tokens, first_id, weight.size(0));
    at::Tensor y = weight.index_select(0, places.rows);
    context->save_for_backward({weight, places.rows, places.outside});
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    if (group->size() == 1) return y;
    y.masked_fill_(places.outside.unsqueeze(1), 0);
    if (group->cuts_rows()) return SumToOwnRows(*group, y);
    group->AllReduce(y);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor& sum = saved[0].mutable_grad();
    const auto group = Held<TensorGroup>(context, "group");
    const at::Tensor all =
        group->cuts_rows() ? GatherRows(*group, gradients[0], saved[1].size(0)) : gradients[0];
    const at::Tensor rows = all.to(sum.scalar_type()).masked_fill(saved[2].unsqueeze(1), 0);
    // On a GPU index_add_ adds in the order of its threads, this one in that of the rows; "unsafe"
    // is that it does not wait to look whether the places exist, which Find has seen to.
    at::_index_put_impl_(sum, {saved[1]}, rows, /*accumulate=*/true, /*unsafe=*/true);
    return {{}, {}, {}, {}};
  }
};

std::int64_t RowsAtOnce(const at::Tensor& weight) {
  return LogitRows(weight.size(0), weight.is_cuda() || RoundsInBetween(weight));
}

/// Calls `visit(first row, rows)` for the rows of all chunks, in order.
template <class Visit>
void ForEachChunk(std::int64_t num_rows, const at::Tensor& weight, Visit visit) {
  const std::int64_t most = RowsAtOnce(weight);
  for (std::int64_t row = 0; row < num_rows; row += most) {
    visit(row, std::min(most, num_rows - row));
  }
}

/// x [M, H] to logits [M, V] over a rank's part of the vocabulary, in float32 at least.
at::Tensor LogitsOf(const at::Tensor& x, const at::Tensor& weight) {
  at::Tensor logits = WideProduct(x, weight.t());
  return logits.scalar_type() == at::kBFloat16 ? logits.to(at::kFloat) : logits;
}

/// Sums of M rows over one rank's part of the vocabulary, [M] each.
struct RowSums {
  at::Tensor maxima;    ///< the largest logit
  at::Tensor first_id;  ///< int64: the first id that has it
  at::Tensor sums;      ///< of e^(logit - the largest)
  at::Tensor picked;    ///< the label's logit; 0: the label is another rank's
};

RowSums SumsOf(const at::Tensor& logits, const at::Tensor& labels, std::int64_t first_id) {
  RowSums row;
  std::tie(row.maxima, row.first_id) = logits.max(1);
  row.first_id.add_(first_id);
  const Places places = Find(labels, first_id, logits.size(1));
  row.picked =
      logits.gather(1, places.rows.unsqueeze(1)).squeeze(1).masked_fill_(places.outside, 0);
  row.sums = logits.sub_(row.maxima.unsqueeze(1)).exp_().sum(1);
  return row;
}

RowSums Joined(const std::vector<RowSums>& chunks) {
  const auto join = [&](at::Tensor RowSums::*member) {
    std::vector<at::Tensor> parts;
    for (const RowSums& chunk : chunks) parts.push_back(chunk.*member);
    return at::cat(parts);
  };
  return {join(&RowSums::maxima), join(&RowSums::first_id), join(&RowSums::sums),
          join(&RowSums::picked)};
}

/// Combines the sums of all ranks: [2, M], the largest logit of a row and the sum of e^(logit - the
/// largest). Fills the predictions.
at::Tensor SumsOfAll(const RowSums& own, const at::Tensor& labels, const TensorGroup& group,
                     Predictions& predictions) {
  at::Tensor maxima = group.size() > 1 ? own.maxima.clone() : own.maxima;
  group.AllReduce(maxima, ReduceOp::kMax);
  // A largest logit before the label is what would be predicted.
  const at::Tensor beaten = own.maxima.eq(maxima).logical_and_(own.first_id.lt(labels));
  at::Tensor sums = at::stack(
      {own.sums * (own.maxima - maxima).exp_(), own.picked, beaten.to(maxima.scalar_type())});
  group.AllReduce(sums);
  predictions.losses = sums[0].to(at::kDouble).log() - (sums[1] - maxima);
  predictions.correct = sums[1].eq(maxima).logical_and_(sums[2].eq(0)).to(at::kDouble);
  return at::stack({maxima, sums[0]});
}

/// The gradient of logits: probabilities, less 1 at every label that is this rank's, times the
/// gradient of the loss, in the type of products.
at::Tensor LogitsGradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& labels,
                          std::int64_t first_id, const at::Tensor& sums,
                          const at::Tensor& loss_gradient) {
  at::Tensor logits = LogitsOf(x, weight);
  logits.sub_(sums[0].unsqueeze(1)).exp_().mul_((loss_gradient / sums[1]).unsqueeze(1));
  const Places places = Find(labels, first_id, logits.size(1));
  const at::Tensor ones = places.outside.logical_not().to(logits.scalar_type());
  logits.scatter_add_(1, places.rows.unsqueeze(1), (ones * -loss_gradient).unsqueeze(1));
  return logits.to(weight.scalar_type());
}

/// Keeps no logits: the backward computes them again.
struct LossFunction : torch::autograd::Function<LossFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& labels, std::int64_t first_id,
                            const TensorGroupPtr& group, Predictions* predictions) {
    std::vector<RowSums> chunks;
    const auto add = [&](std::int64_t row, std::int64_t rows) {
      chunks.push_back(
          SumsOf(LogitsOf(x.narrow(0, row, rows), weight), labels.narrow(0, row, rows), first_id));
    };
    ForEachChunk(x.size(0), weight, add);
    if (chunks.empty()) add(0, 0);
    const at::Tensor sums = SumsOfAll(Joined(chunks), labels, *group, *predictions);
    context->save_for_backward({x, weight, labels, sums});
    context->saved_data["first_id"] = first_id;
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    return predictions->losses.sum().to(sums.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const bool wants_x = context->needs_input_grad(0);
    at::Tensor x_gradient;
    if (wants_x) x_gradient = at::empty_like(x);
    const auto for_chunks = [x, weight, labels = saved[2], sums = saved[3],
                             first_id = context->saved_data["first_id"].toInt(),
                             loss_gradient = gradients[0]](const auto& use) {
      ForEachChunk(x.size(0), weight, [&](std::int64_t row, std::int64_t rows) {
        const at::Tensor part = x.narrow(0, row, rows);
        use(LogitsGradient(part, weight, labels.narrow(0, row, rows), first_id,
                           sums.narrow(1, row, rows), loss_gradient),
            part, row);
      });
    };
    const auto add_to_weight = [weight](const at::Tensor& logits_gradient, const at::Tensor& part) {
      AddProduct(weight.mutable_grad(), logits_gradient.t(), part);
    };
    // Deferred work computes the logits a third time, rather than keep all of them.
    const bool separately = weight.requires_grad() && (!wants_x || WeightsAreDeferred());
    if (wants_x) {
      for_chunks([&](const at::Tensor& logits_gradient, const at::Tensor& part, std::int64_t row) {
        x_gradient.narrow(0, row, part.size(0)).copy_(Product(logits_gradient, weight));
        if (weight.requires_grad() && !separately) add_to_weight(logits_gradient, part);
      });
      const auto group = Held<TensorGroup>(context, "group");
      if (!group->cuts_rows()) group->AllReduce(x_gradient);
    }
    if (separately) {
      RunOrDefer([for_chunks, add_to_weight] {
        for_chunks([&](const at::Tensor& logits_gradient, const at::Tensor& part, std::int64_t) {
          add_to_weight(logits_gradient, part);
        });
      });
    }
    return {x_gradient, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor Embed(const at::Tensor& tokens, const VocabularyPart& part,
                 const TensorGroupPtr& group) {
  return EmbedFunction::apply(part.weight, tokens, part.first_id, group);
}

at::Tensor VocabularyLoss(const at::Tensor& x, const VocabularyPart& part, const at::Tensor& labels,
                          const TensorGroupPtr& group, Predictions& predictions) {
  return LossFunction::apply(x, part.weight, labels, part.first_id, group, &predictions);
}

}  // namespace troupe
