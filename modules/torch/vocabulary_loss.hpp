// The loss of a cut vocabulary as autograd sees it; what is done per row is left to who includes
// it.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/products.hpp"
#include "modules/torch/vocabulary.hpp"

namespace troupe {

/// VocabularyLoss over `Rows`, which has
///   Predict         turns `logits` [M, V] of this rank into probabilities over the whole
///                   vocabulary, fills the predictions, and returns the scalar sum of the losses
///   SubtractLabels  takes 1 from the probability of every label that is this rank's
/// One [M, V] tensor serves as logits, probabilities and gradient.
template <class Rows>
struct VocabularyLossFunction : torch::autograd::Function<VocabularyLossFunction<Rows>> {
  using AutogradContext = torch::autograd::AutogradContext;
  using variable_list = torch::autograd::variable_list;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& labels, std::int64_t first_id,
                            const TensorGroupPtr& group, Predictions* predictions) {
    at::Tensor logits = WideProduct(x, weight.t());
    at::Tensor loss = Rows::Predict(logits, labels, first_id, *group, *predictions);
    context->save_for_backward({x, weight, labels, logits});
    context->saved_data["first_id"] = first_id;
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    // The probabilities, written over: nobody reads them again.
    at::Tensor logits_gradient = saved[3];
    Rows::SubtractLabels(logits_gradient, saved[2], context->saved_data["first_id"].toInt());
    logits_gradient.mul_(gradients[0]);
    logits_gradient = logits_gradient.to(weight.scalar_type());
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = Product(logits_gradient, weight);
      c10::static_intrusive_pointer_cast<TensorGroup>(context->saved_data["group"].toCapsule())
          ->AllReduce(x_gradient);
    }
    if (weight.requires_grad()) {
      RunOrDefer([weight, logits_gradient, x = saved[0]] {
        AddProduct(weight.mutable_grad(), logits_gradient.t(), x);
      });
    }
    return {x_gradient, {}, {}, {}, {}, {}};
  }
};

}  // namespace troupe
