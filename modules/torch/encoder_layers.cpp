#include "modules/torch/encoder_layers.hpp"

#include <stdexcept>
#include <utility>

#include "modules/torch/activation_offload.hpp"
#include "modules/torch/activations.hpp"
#include "modules/torch/autograd.hpp"
#include "modules/torch/context_attention.hpp"
#include "modules/torch/layer_norm.hpp"
#include "modules/torch/recompute.hpp"
#include "modules/torch/sequence_rows.hpp"
#include "plan/layer_split.hpp"

namespace troupe {
namespace {

struct LeafValuesFunction : torch::autograd::Function<LeafValuesFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& leaf) {
    context->save_for_backward({leaf});
    return leaf.view_as(leaf);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    context->get_saved_variables()[0].mutable_grad().add_(gradients[0]);
    return {{}};
  }
};

}  // namespace

static at::Tensor Gelu(const at::Tensor& x) {
  NoteKept({x});
  return at::gelu(x);
}
static at::Tensor GeluTanh(const at::Tensor& x) {
  NoteKept({x});
  return at::gelu(x, "tanh");
}

static auto FunctionOf(MlpActivation activation) {
  switch (activation) {
    case MlpActivation::kQuickGelu:
      return QuickGelu;
    case MlpActivation::kGelu:
      return Gelu;
    case MlpActivation::kGeluTanh:
      return GeluTanh;
  }
  throw std::invalid_argument("activation: unknown");
}

LayerNormWeights LoadLayerNorm(const std::string& name, const ParameterStore& store) {
  return {store.Leaf(name + ".weight"), store.Leaf(name + ".bias")};
}

at::Tensor LeafValues(const at::Tensor& leaf) { return LeafValuesFunction::apply(leaf); }

OwnTokens::OwnTokens(const PatchEncoder& encoder, const ContextGroup& context)
    : tokens_(encoder.TokensOf(context.size(), context.rank())),
      num_inner_(context.rank() == 0 ? encoder.num_inner_tokens() : 0),
      all_in_order_(context.size() == 1 && encoder.joined == 1) {}

at::Tensor OwnTokens::Of(const at::Tensor& x, std::int64_t dim, std::int64_t inner) const {
  if (all_in_order_) return x;
  std::vector<std::int64_t> places;
  for (const std::int64_t token : tokens_) {
    if (token >= inner) places.push_back(token - inner);
  }
  return x.index_select(dim, Upload(at::tensor(places, at::kLong), x.device()));
}

at::Tensor EmbedPatches(const at::Tensor& images, const PatchEncoder& sizes, const OwnTokens& own,
                        const LinearWeights& patch, const Numerics& numerics,
                        const TensorGroupPtr& group) {
  const std::int64_t size = sizes.patch_size;
  const std::int64_t side = sizes.image_size / size;
  const at::Tensor pixels = Upload(images, numerics.device)
                                .to(numerics.type)
                                .narrow(2, 0, side * size)
                                .narrow(3, 0, side * size)
                                .reshape({images.size(0), 3, side, size, side, size})
                                .permute({0, 2, 4, 1, 3, 5})
                                .reshape({images.size(0), side * side, 3 * size * size});
  const std::int64_t first_patch = sizes.sequence_length() - sizes.num_patches();
  const at::Tensor mine = own.Of(pixels, 1, first_patch);
  return Linear(mine.reshape({-1, 3 * size * size}), patch, LinearCut::kNone, group)
      .view({images.size(0), mine.size(1), sizes.hidden});
}

EncoderLayers::EncoderLayers(const ModuleConfig& module, int pp, const ParameterStore& store,
                             const BodyGroups& groups)
    : name_(module.name),
      module_(module),
      sizes_(module.As<PatchEncoder>().sizes()),
      own_(module.As<PatchEncoder>(), *groups.context),
      norm_epsilon_(module.As<PatchEncoder>().norm_epsilon),
      activation_(FunctionOf(module.As<PatchEncoder>().activation)),
      recompute_(module.recompute),
      portable_(store.numerics().portable),
      group_(groups.tensor),
      context_(groups.context) {
  if (sizes_.heads % group_->size() != 0) {
    throw std::invalid_argument(name_ + ": expected tp to divide " + std::to_string(sizes_.heads) +
                                " heads, got " + std::to_string(group_->size()));
  }
  const Interval layers = SplitLayers(module).at(static_cast<std::size_t>(pp));
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    layers_.push_back(LoadLayer(name_ + ".encoder.layers." + std::to_string(layer), module, store));
    layers_.back().gate = store.exchange().MakeGate(name_, BucketPlace::kInLayer, layer);
    layers_.back().leaves = ActivationsLeave(module, pp, layer);
  }
  if (pp + 1 == module.num_stages() && module.As<PatchEncoder>().final_norm) {
    final_norm_ = LoadLayerNorm(name_ + ".post_layernorm", store);
  }
}

EncoderLayers::Layer EncoderLayers::LoadLayer(const std::string& name, const ModuleConfig& module,
                                              const ParameterStore& store) {
  const std::string attention = name + ".self_attn.";
  const auto linears = [&](const std::vector<std::string>& names) {
    return LoadLinears(names, module, store);
  };
  return {.norm1 = LoadLayerNorm(name + ".layer_norm1", store),
          .qkv = linears({attention + "q_proj", attention + "k_proj", attention + "v_proj"}),
          .out = linears({attention + "out_proj"}),
          .norm2 = LoadLayerNorm(name + ".layer_norm2", store),
          .fc1 = linears({name + ".mlp.fc1"}),
          .fc2 = linears({name + ".mlp.fc2"})};
}

at::Tensor EncoderLayers::ApplyNorm(const at::Tensor& rows, const LayerNormWeights& norm) const {
  return LayerNorm(rows, norm.weight, norm.bias, norm_epsilon_);
}

at::Tensor EncoderLayers::Run(at::Tensor rows) const {
  if (rows.size(1) != sizes_.hidden || rows.size(0) % own_.size() != 0) {
    throw std::invalid_argument(name_ + ": expected a multiple of " + std::to_string(own_.size()) +
                                " rows of " + std::to_string(sizes_.hidden) + ", got " +
                                ToString(rows.sizes().vec()));
  }
  const AttendFunction attend = AttendOver(rows.size(0) / own_.size());
  const std::int64_t cut_rows = group_->cuts_rows() ? rows.size(0) : 0;
  if (cut_rows > 0) rows = CutRows(rows, group_);
  for (const Layer& layer : layers_) {
    const auto run = [this, &layer, attend, cut_rows](const at::Tensor& x) {
      return RunLayer(x, layer, attend, cut_rows);
    };
    const auto part = [&](const at::Tensor& x) {
      return RunPart(recompute_.Has(LayerPart::kLayer), x,
                     AnyTrained({&layer.qkv, &layer.out, &layer.fc1, &layer.fc2}), run);
    };
    rows = RunLayerAway(layer.leaves, layer.gate->Enter(rows), part);
  }
  return cut_rows > 0 ? JoinRows(rows, cut_rows, group_) : rows;
}

AttendFunction EncoderLayers::AttendOver(std::int64_t num_images) const {
  auto plan = c10::make_intrusive<AttentionPlan>();
  plan->sequences = num_images;
  plan->length = own_.size();
  plan->heads = sizes_.heads / group_->size();
  plan->kv_heads = plan->heads;
  plan->head_dim = sizes_.hidden / sizes_.heads;
  plan->portable = portable_;
  if (context_->size() == 1) {
    return [plan](const at::Tensor& qkv) { return Attention(qkv, plan); };
  }
  auto context = c10::make_intrusive<ContextPlan>();
  context->group = context_;
  std::vector<std::int64_t> tokens;
  for (int rank = 0; rank < context_->size(); ++rank) {
    tokens.push_back(std::ssize(module_.As<PatchEncoder>().TokensOf(context_->size(), rank)));
  }
  AddFullGroup(num_images, tokens, *plan, *context);
  return [context](const at::Tensor& qkv) { return AttentionOverContext(qkv, context); };
}

at::Tensor EncoderLayers::Finish(const at::Tensor& rows) const {
  const at::Tensor normed = final_norm_ ? ApplyNorm(rows, *final_norm_) : rows;
  const std::int64_t side = module_.As<PatchEncoder>().joined;
  if (side == 1 && own_.num_inner() == 0) return normed;
  return normed.view({-1, own_.size(), sizes_.hidden})
      .narrow(1, own_.num_inner(), own_.size() - own_.num_inner())
      .reshape({-1, side * side * sizes_.hidden});
}

std::vector<std::int64_t> EncoderLayers::RowNumbers(std::int64_t num_rows) const {
  const auto& encoder = module_.As<PatchEncoder>();
  std::vector<std::int64_t> numbers;
  for (std::int64_t image = 0; image < num_rows / encoder.rows_per_square(); ++image) {
    for (const std::int64_t token : own_.tokens()) {
      numbers.push_back(image * encoder.sequence_length() + token);
    }
  }
  return numbers;
}

at::Tensor EncoderLayers::RunAttention(const at::Tensor& rows, const Layer& layer,
                                       const AttendFunction& attend, std::int64_t cut_rows) const {
  const at::Tensor qkv =
      Linear(ApplyNorm(rows, layer.norm1), layer.qkv, LinearCut::kOutputs, group_, cut_rows);
  return attend(qkv);
}

at::Tensor EncoderLayers::RunLayer(const at::Tensor& rows, const Layer& layer,
                                   const AttendFunction& attend, std::int64_t cut_rows) const {
  const auto attention = [this, &layer, attend, cut_rows](const at::Tensor& x) {
    return RunAttention(x, layer, attend, cut_rows);
  };
  const at::Tensor heads =
      RunPart(recompute_.Has(LayerPart::kAttention), rows, layer.qkv.trained(), attention);
  const at::Tensor middle = rows + Linear(heads, layer.out, LinearCut::kInputs, group_, cut_rows);
  const auto up = [this, &layer, cut_rows](const at::Tensor& x) {
    return activation_(
        Linear(ApplyNorm(x, layer.norm2), layer.fc1, LinearCut::kOutputs, group_, cut_rows));
  };
  const auto mlp = [this, &layer, up, cut_rows](const at::Tensor& x) {
    const at::Tensor wide = RunPart(recompute_.Has(LayerPart::kMlpUp), x, layer.fc1.trained(), up);
    return Linear(wide, layer.fc2, LinearCut::kInputs, group_, cut_rows);
  };
  return middle + RunPart(recompute_.Has(LayerPart::kMlp), middle,
                          AnyTrained({&layer.fc1, &layer.fc2}), mlp);
}

}  // namespace troupe
