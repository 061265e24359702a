#include "modules/torch/router.hpp"

#include <utility>

#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/planted.hpp"
#include "modules/torch/routed_rows.hpp"

namespace troupe {
namespace {

/// logits [M, E] = x [M, H] W^T in the wider of their types. The losses join their gradient here.
struct LogitsFunction : torch::autograd::Function<LogitsFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const RouterLossesPtr& losses, std::int64_t layer) {
    const at::ScalarType type = TypeOf(x, weight);
    at::Tensor logits = at::mm(x.to(type), weight.to(type).t());
    context->save_for_backward({x, weight, losses ? logits : at::Tensor()});
    NoteKept({x});
    context->saved_data["losses"] = c10::IValue::make_capsule(losses);
    context->saved_data["layer"] = layer;
    return logits;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    at::Tensor gradient = gradients[0].clone();
    if (saved[2].defined()) {
      Held<RouterLosses>(context, "losses")
          ->AddTo(gradient, saved[2], context->saved_data["layer"].toInt());
    }
    at::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = at::mm(gradient, weight.to(gradient.scalar_type())).to(x.scalar_type());
    }
    if (weight.requires_grad()) {
      RunOrDefer([gradient, x, weight] {
        weight.mutable_grad().add_(at::mm(gradient.t(), x.to(gradient.scalar_type())));
      });
    }
    return {x_gradient, {}, {}, {}};
  }

  static at::ScalarType TypeOf(const at::Tensor& x, const at::Tensor& weight) {
    const at::ScalarType wide = at::promote_types(x.scalar_type(), weight.scalar_type());
    return at::promote_types(wide, at::kFloat);
  }
};

}  // namespace

RouterLosses::RouterLosses(const RouterScales& scales, at::Tensor groups, std::int64_t num_groups,
                           const ExpertsConfig& experts)
    : scales_(scales), groups_(std::move(groups)), experts_(experts) {
  const bool joint = scales_.moe.balance == Balance::kMicrobatch;
  if (joint) groups_ = at::zeros_like(groups_);
  counts_ = at::zeros({scales_.stage_layers, joint ? 1 : num_groups, experts_.count},
                      groups_.options().dtype(at::kDouble));
}

void RouterLosses::Count(std::int64_t layer, const at::Tensor& chosen) {
  if (factors_.defined()) return;
  const at::Tensor places = groups_.unsqueeze(1) * experts_.count + chosen;
  counts_.select(0, layer).view({-1}).index_add_(0, places.flatten(),
                                                 at::ones({places.numel()}, counts_.options()));
}

void RouterLosses::Finish(const ExpertGroup& group) {
  if (scales_.moe.balance_coefficient == 0.0) {
    factors_ = counts_;
    return;
  }
  at::Tensor sums = counts_.clone();
  group.SumCounts(sums);
  if (!HasLibraryFault(LibraryFault::kUnsharedBalance)) counts_ = sums;
  const bool joint = scales_.moe.balance == Balance::kMicrobatch;
  // Counts of one group add up to the tokens of the group times k.
  const at::Tensor counts = joint ? counts_.sum(0, /*keepdim=*/true).expand_as(counts_) : counts_;
  const at::Tensor tokens =
      counts.sum(2, /*keepdim=*/true) / static_cast<double>(experts_.per_token);
  const auto layers = static_cast<double>(scales_.all_layers);
  const double share = joint
                           ? scales_.microbatch * static_cast<double>(scales_.stage_layers) / layers
                           : scales_.sample / layers;
  const double scale =
      scales_.moe.balance_coefficient * static_cast<double>(experts_.count) * share;
  factors_ = scale * counts / tokens.clamp_min(1.0).square();
}

void RouterLosses::AddTo(at::Tensor& gradient, const at::Tensor& logits, std::int64_t layer) const {
  const at::Tensor probabilities = at::softmax(logits, 1);
  if (scales_.moe.balance_coefficient != 0.0) {
    const at::Tensor factors =
        factors_.select(0, layer).index_select(0, groups_).to(gradient.scalar_type());
    const at::Tensor mean = (probabilities * factors).sum(1, /*keepdim=*/true);
    gradient.add_(probabilities * (factors - mean));
  }
  const double z = scales_.moe.z_coefficient;
  if (z == 0.0) return;
  const at::Tensor sums = at::logsumexp(logits, {1}, /*keepdim=*/true);
  gradient.add_(probabilities * sums,
                2.0 * z * scales_.token / static_cast<double>(scales_.all_layers));
}

/// Records the choices for a comparison, if there is one.
static void Record(const std::vector<RoutedToken>& names, std::int64_t layer,
                   const at::Tensor& chosen) {
  ExpertChoices* const choices = RecordExpertChoices::Active();
  if (choices == nullptr || names.empty()) return;
  const at::Tensor host = chosen.to(at::kCPU).contiguous();
  const std::int64_t width = host.size(1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* const experts =
        host.data_ptr<std::int64_t>() + static_cast<std::int64_t>(i) * width;
    RoutedToken name = names[i];
    name.layer = layer;
    choices->Record(name, {experts, experts + width});
  }
}

Routing ChooseExperts(const at::Tensor& x, const at::Tensor& weight, const ExpertsConfig& experts,
                      const RoutedRows& rows, const RoutedLayer& layer) {
  const at::Tensor logits = LogitsFunction::apply(x, weight, rows.losses, layer.place);
  const at::Tensor chosen = std::get<1>(at::topk(logits.detach(), experts.per_token, 1));
  if (rows.losses) rows.losses->Count(layer.place, chosen);
  Record(rows.names, layer.number, chosen);
  if (experts.softmax == RouterSoftmax::kAfter) {
    return {chosen, at::softmax(logits.gather(1, chosen), 1)};
  }
  return {chosen, at::softmax(logits, 1).gather(1, chosen)};
}

}  // namespace troupe
