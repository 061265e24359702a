#include "modules/torch/encoder_layers.hpp"

#include <stdexcept>
#include <utility>

#include "modules/torch/activations.hpp"
#include "modules/torch/autograd.hpp"
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

static at::Tensor Gelu(const at::Tensor& x) { return at::gelu(x); }
static at::Tensor GeluTanh(const at::Tensor& x) { return at::gelu(x, "tanh"); }

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

at::Tensor EmbedPatches(const at::Tensor& images, const PatchEncoder& sizes,
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
                                .reshape({-1, 3 * size * size});
  return Linear(pixels, patch, LinearCut::kNone, group)
      .view({images.size(0), side * side, sizes.hidden});
}

at::Tensor JoinPatches(const at::Tensor& rows, const PatchEncoder& sizes) {
  const std::int64_t side = sizes.joined;
  if (side == 1) return rows;
  const std::int64_t squares = sizes.grid() / side;
  return rows.view({-1, squares, side, squares, side, sizes.hidden})
      .transpose(2, 3)
      .reshape({-1, side * side * sizes.hidden});
}

EncoderLayers::EncoderLayers(const ModuleConfig& module, int pp, const ParameterStore& store,
                             TensorGroupPtr group)
    : name_(module.name),
      sizes_(module.As<PatchEncoder>().sizes()),
      length_(module.As<PatchEncoder>().sequence_length()),
      norm_epsilon_(module.As<PatchEncoder>().norm_epsilon),
      activation_(FunctionOf(module.As<PatchEncoder>().activation)),
      recompute_(module.recompute),
      portable_(store.numerics().portable),
      group_(std::move(group)) {
  if (sizes_.heads % group_->size() != 0) {
    throw std::invalid_argument(name_ + ": expected tp to divide " + std::to_string(sizes_.heads) +
                                " heads, got " + std::to_string(group_->size()));
  }
  const Interval layers = SplitLayers(module).at(static_cast<std::size_t>(pp));
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    layers_.push_back(LoadLayer(name_ + ".encoder.layers." + std::to_string(layer), module, store));
    layers_.back().gate = store.exchange().MakeGate(name_, BucketPlace::kInLayer, layer);
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
  if (rows.size(1) != sizes_.hidden || rows.size(0) % length_ != 0) {
    throw std::invalid_argument(name_ + ": expected a multiple of " + std::to_string(length_) +
                                " rows of " + std::to_string(sizes_.hidden) + ", got " +
                                ToString(rows.sizes().vec()));
  }
  auto plan = c10::make_intrusive<AttentionPlan>();
  plan->sequences = rows.size(0) / length_;
  plan->length = length_;
  plan->heads = sizes_.heads / group_->size();
  plan->kv_heads = plan->heads;
  plan->head_dim = sizes_.hidden / sizes_.heads;
  plan->portable = portable_;
  const std::int64_t cut_rows = group_->cuts_rows() ? rows.size(0) : 0;
  if (cut_rows > 0) rows = CutRows(rows, group_);
  for (const Layer& layer : layers_) {
    const auto run = [this, &layer, plan, cut_rows](const at::Tensor& x) {
      return RunLayer(x, layer, plan, cut_rows);
    };
    rows = RunPart(recompute_ == Recompute::kFull, layer.gate->Enter(rows),
                   AnyTrained({&layer.qkv, &layer.out, &layer.fc1, &layer.fc2}), run);
  }
  return cut_rows > 0 ? JoinRows(rows, cut_rows, group_) : rows;
}

at::Tensor EncoderLayers::Finish(const at::Tensor& rows) const {
  return final_norm_ ? ApplyNorm(rows, *final_norm_) : rows;
}

at::Tensor EncoderLayers::RunAttention(const at::Tensor& rows, const Layer& layer,
                                       const AttentionPlanPtr& plan, std::int64_t cut_rows) const {
  const at::Tensor qkv =
      Linear(ApplyNorm(rows, layer.norm1), layer.qkv, LinearCut::kOutputs, group_, cut_rows);
  return Attention(qkv, plan);
}

at::Tensor EncoderLayers::RunLayer(const at::Tensor& rows, const Layer& layer,
                                   const AttentionPlanPtr& plan, std::int64_t cut_rows) const {
  const auto attention = [this, &layer, plan, cut_rows](const at::Tensor& x) {
    return RunAttention(x, layer, plan, cut_rows);
  };
  const at::Tensor heads =
      RunPart(recompute_ == Recompute::kAttention, rows, layer.qkv.trained(), attention);
  const at::Tensor middle = rows + Linear(heads, layer.out, LinearCut::kInputs, group_, cut_rows);
  const at::Tensor wide =
      Linear(ApplyNorm(middle, layer.norm2), layer.fc1, LinearCut::kOutputs, group_, cut_rows);
  return middle + Linear(activation_(wide), layer.fc2, LinearCut::kInputs, group_, cut_rows);
}

}  // namespace troupe
