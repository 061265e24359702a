#include "modules/torch/vocabulary.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "modules/torch/portable_vocabulary.hpp"
#include "modules/torch/row_kernels.hpp"
#include "modules/torch/vocabulary_loss.hpp"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight,
                            const at::Tensor& tokens, std::int64_t first_id,
                            const TensorGroupPtr& group) {
    at::Tensor y = at::empty({tokens.numel(), weight.size(1)}, weight.options());
    AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "Embed", [&] {
      LookUpRows(weight.data_ptr<scalar_t>(), first_id, weight.size(0),
                 tokens.data_ptr<std::int64_t>(), tokens.numel(), weight.size(1),
                 y.data_ptr<scalar_t>());
    });
    group->AllReduce(y);
    context->save_for_backward({weight, tokens});
    context->saved_data["first_id"] = first_id;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[0];
    const at::Tensor& tokens = saved[1];
    const at::Tensor gradient = gradients[0].contiguous();
    AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "Embed", [&] {
      AddLookedUpRows(gradient.data_ptr<scalar_t>(), context->saved_data["first_id"].toInt(),
                      weight.size(0), tokens.data_ptr<std::int64_t>(), tokens.numel(),
                      weight.size(1), weight.mutable_grad().data_ptr<scalar_t>());
    });
    return {{}, {}, {}, {}};
  }
};

/// Per row, [3, M]: sum of exponentials, shifted logit of the label, and how many ranks hold a
/// largest logit before the label. Turns `logits` into probabilities.
template <class T>
at::Tensor Normalise(at::Tensor& logits, const std::int64_t* labels, std::int64_t first_id,
                     const TensorGroup& group) {
  const std::int64_t rows = logits.size(0);
  const std::int64_t width = logits.size(1);
  at::Tensor local_maxima = at::empty({rows}, logits.options());
  at::Tensor places = at::empty({rows}, at::kLong);
  RowMaxima(logits.data_ptr<T>(), rows, width, local_maxima.data_ptr<T>(),
            places.data_ptr<std::int64_t>());
  at::Tensor maxima = group.size() > 1 ? local_maxima.clone() : local_maxima;
  group.AllReduce(maxima, ReduceOp::kMax);
  logits.sub_(maxima.unsqueeze(1));

  at::Tensor sums = at::zeros({3, rows}, logits.options());
  T* const picked = sums.data_ptr<T>() + rows;
  T* const beaten = picked + rows;
  for (std::int64_t m = 0; m < rows; ++m) {
    const std::int64_t label = labels[m] - first_id;
    if (label >= 0 && label < width) picked[m] = logits.data_ptr<T>()[m * width + label];
    const bool holds_maximum = local_maxima.data_ptr<T>()[m] == maxima.data_ptr<T>()[m];
    if (holds_maximum && places.data_ptr<std::int64_t>()[m] < label) beaten[m] = 1;
  }
  logits.exp_();
  sums[0].copy_(logits.sum(1));
  group.AllReduce(sums);
  logits.div_(sums[0].unsqueeze(1));
  return sums;
}

/// Loops over the rows in host memory.
struct LoopedRows {
  static at::Tensor Predict(at::Tensor& logits, const at::Tensor& labels, std::int64_t first_id,
                            const TensorGroup& group, Predictions& predictions) {
    const std::int64_t rows = logits.size(0);
    double loss = 0.0;
    predictions.losses = at::empty({rows}, at::kDouble);
    predictions.correct = at::empty({rows}, at::kDouble);
    double* const losses = predictions.losses.data_ptr<double>();
    double* const correct = predictions.correct.data_ptr<double>();
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "VocabularyLoss", [&] {
      const at::Tensor sums =
          Normalise<scalar_t>(logits, labels.data_ptr<std::int64_t>(), first_id, group);
      const scalar_t* const sum = sums.data_ptr<scalar_t>();
      for (std::int64_t m = 0; m < rows; ++m) {
        const scalar_t picked = sum[rows + m];
        const double row_loss = std::log(static_cast<double>(sum[m])) - static_cast<double>(picked);
        losses[m] = row_loss;
        // The largest shifted logit is exactly 0.
        correct[m] = picked == 0 && sum[2 * rows + m] == 0 ? 1.0 : 0.0;
        loss += row_loss;
      }
    });
    return at::full({}, loss, logits.options());
  }

  static void SubtractLabels(at::Tensor& probabilities, const at::Tensor& labels,
                             std::int64_t first_id) {
    AT_DISPATCH_FLOATING_TYPES(probabilities.scalar_type(), "VocabularyLoss", [&] {
      const auto* const label = labels.data_ptr<std::int64_t>();
      const std::int64_t width = probabilities.size(1);
      for (std::int64_t m = 0; m < labels.numel(); ++m) {
        const std::int64_t place = label[m] - first_id;
        if (place >= 0 && place < width) {
          probabilities.data_ptr<scalar_t>()[m * width + place] -= scalar_t(1);
        }
      }
    });
  }
};

}  // namespace

at::Tensor Embed(const at::Tensor& tokens, const VocabularyPart& part,
                 const VocabularyPlace& place) {
  if (place.portable) return PortableEmbed(tokens, part, place.group);
  return EmbedFunction::apply(part.weight, tokens, part.first_id, place.group);
}

at::Tensor VocabularyLoss(const at::Tensor& x, const VocabularyPart& part, const at::Tensor& labels,
                          const VocabularyPlace& place, Predictions& predictions) {
  if (place.portable) return PortableLoss(x, part, labels, place.group, predictions);
  return VocabularyLossFunction<LoopedRows>::apply(x, part.weight, labels, part.first_id,
                                                   place.group, &predictions);
}

}  // namespace troupe
