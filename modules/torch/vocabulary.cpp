#include "modules/torch/vocabulary.hpp"

#include <tuple>

#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/products.hpp"

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
    if (group->size() > 1) {
      y.masked_fill_(places.outside.unsqueeze(1), 0);
      group->AllReduce(y);
    }
    context->save_for_backward({weight, places.rows, places.outside});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor& sum = saved[0].mutable_grad();
    const at::Tensor rows =
        gradients[0].to(sum.scalar_type()).masked_fill(saved[2].unsqueeze(1), 0);
    // On a GPU index_add_ adds in the order of its threads, this one in that of the rows; "unsafe"
    // is that it does not wait to look whether the places exist, which Find has seen to.
    at::_index_put_impl_(sum, {saved[1]}, rows, /*accumulate=*/true, /*unsafe=*/true);
    return {{}, {}, {}, {}};
  }
};

/// Per row, [3, M]: sum of exponentials, shifted logit of the label, and how many ranks hold a
/// largest logit before the label. Turns `logits` into probabilities.
at::Tensor Normalise(at::Tensor& logits, const at::Tensor& labels, std::int64_t first_id,
                     const TensorGroup& group) {
  const auto [local_maxima, first_places] = logits.max(1);
  at::Tensor maxima = group.size() > 1 ? local_maxima.clone() : local_maxima;
  group.AllReduce(maxima, ReduceOp::kMax);
  logits.sub_(maxima.unsqueeze(1));

  const Places places = Find(labels, first_id, logits.size(1));
  const at::Tensor picked =
      logits.gather(1, places.rows.unsqueeze(1)).squeeze(1).masked_fill_(places.outside, 0);
  const at::Tensor beaten =
      local_maxima.eq(maxima).logical_and_(first_places.lt(labels - first_id));
  logits.exp_();
  at::Tensor sums = at::stack({logits.sum(1), picked, beaten.to(logits.scalar_type())});
  group.AllReduce(sums);
  logits.div_(sums[0].unsqueeze(1));
  return sums;
}

/// Turns `logits` [M, V] of this rank into probabilities over the whole vocabulary, fills the
/// predictions, and returns the scalar sum of the losses.
at::Tensor Predict(at::Tensor& logits, const at::Tensor& labels, std::int64_t first_id,
                   const TensorGroup& group, Predictions& predictions) {
  if (logits.scalar_type() == at::kBFloat16) logits = logits.to(at::kFloat);
  const at::Tensor sums = Normalise(logits, labels, first_id, group);
  predictions.losses = sums[0].to(at::kDouble).log_() - sums[1];
  // The largest shifted logit is exactly 0.
  predictions.correct = sums[1].eq(0).logical_and_(sums[2].eq(0)).to(at::kDouble);
  return predictions.losses.sum().to(logits.scalar_type());
}

/// Takes 1 from the probability of every label that is this rank's.
void SubtractLabels(at::Tensor& probabilities, const at::Tensor& labels, std::int64_t first_id) {
  const Places places = Find(labels, first_id, probabilities.size(1));
  const at::Tensor ones = places.outside.logical_not().to(probabilities.scalar_type());
  probabilities.scatter_add_(1, places.rows.unsqueeze(1), ones.neg().unsqueeze(1));
}

/// One [M, V] tensor serves as logits, probabilities and gradient.
struct LossFunction : torch::autograd::Function<LossFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& labels, std::int64_t first_id,
                            const TensorGroupPtr& group, Predictions* predictions) {
    at::Tensor logits = WideProduct(x, weight.t());
    at::Tensor loss = Predict(logits, labels, first_id, *group, *predictions);
    context->save_for_backward({x, weight, labels, logits});
    context->saved_data["first_id"] = first_id;
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    // The probabilities, overwritten: this is their last use.
    at::Tensor logits_gradient = saved[3];
    SubtractLabels(logits_gradient, saved[2], context->saved_data["first_id"].toInt());
    logits_gradient.mul_(gradients[0]);
    logits_gradient = logits_gradient.to(weight.scalar_type());
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = Product(logits_gradient, weight);
      Held<TensorGroup>(context, "group")->AllReduce(x_gradient);
    }
    if (weight.requires_grad()) {
      RunOrDefer([weight, logits_gradient, x = saved[0]] {
        AddProduct(weight.mutable_grad(), logits_gradient.t(), x);
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
