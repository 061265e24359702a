#include "modules/torch/vit.hpp"

#include <stdexcept>
#include <utility>

#include "modules/layer_split.hpp"
#include "modules/torch/activations.hpp"
#include "modules/torch/layer_norm.hpp"
#include "modules/torch/leaf_values.hpp"
#include "modules/torch/recompute.hpp"

namespace troupe {

Vit::Vit(const ModuleConfig& module, int pp, const ParameterStore& store, TensorGroupPtr group)
    : name_(module.name),
      config_(module.vit),
      recompute_(module.recompute),
      numerics_(store.numerics()),
      group_(std::move(group)) {
  if (config_.heads % group_->size() != 0) {
    throw std::invalid_argument(name_ + ": expected tp to divide " + std::to_string(config_.heads) +
                                " heads, got " + std::to_string(group_->size()));
  }
  if (pp == 0) {
    const std::string embeddings = name_ + ".embeddings.";
    embeddings_ = Embeddings{
        .class_token = store.Leaf(embeddings + "class_embedding"),
        .patch = {.weight = store.Leaf(embeddings + "patch_embedding.weight"), .bias = {}},
        .positions = store.Leaf(embeddings + "position_embedding.weight"),
        .norm = LoadNorm(name_ + ".pre_layrnorm", store)};
  }
  const Interval layers = SplitLayers(module).at(static_cast<std::size_t>(pp));
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    layers_.push_back(LoadLayer(name_ + ".encoder.layers." + std::to_string(layer), store));
  }
}

Vit::Norm Vit::LoadNorm(const std::string& name, const ParameterStore& store) {
  return {store.Leaf(name + ".weight"), store.Leaf(name + ".bias")};
}

Vit::Layer Vit::LoadLayer(const std::string& name, const ParameterStore& store) {
  const std::string attention = name + ".self_attn.";
  const auto stacked = [&](const std::string& kind) {
    return store.Leaf(std::vector{attention + "q_proj" + kind, attention + "k_proj" + kind,
                                  attention + "v_proj" + kind});
  };
  const auto linear = [&](const std::string& of) {
    return LinearWeights{store.Leaf(of + ".weight"), store.Leaf(of + ".bias")};
  };
  return {.norm1 = LoadNorm(name + ".layer_norm1", store),
          .qkv = {stacked(".weight"), stacked(".bias")},
          .out = linear(attention + "out_proj"),
          .norm2 = LoadNorm(name + ".layer_norm2", store),
          .fc1 = linear(name + ".mlp.fc1"),
          .fc2 = linear(name + ".mlp.fc2")};
}

at::Tensor Vit::ApplyNorm(const at::Tensor& rows, const Norm& norm) const {
  return LayerNorm(rows, norm.weight, norm.bias, config_.norm_epsilon);
}

at::Tensor Vit::Embed(const at::Tensor& images) const {
  const std::int64_t size = config_.image_size;
  const std::int64_t patch = config_.patch_size;
  const std::int64_t side = size / patch;
  const std::int64_t num_images = images.size(0);
  if (images.sizes() != at::IntArrayRef({num_images, 3, size, size})) {
    throw std::invalid_argument(name_ + ": expected images " +
                                ToString(Shape{num_images, 3, size, size}) + ", got " +
                                ToString(images.sizes().vec()));
  }
  // A convolution whose stride is its kernel is a product with the unfolded patches.
  const at::Tensor patches = Upload(images, numerics_.device)
                                 .to(numerics_.type)
                                 .view({num_images, 3, side, patch, side, patch})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({num_images * side * side, 3 * patch * patch});
  const at::Tensor embedded = Linear(patches, embeddings_->patch, LinearCut::kNone, group_);
  const at::Tensor class_rows =
      LeafValues(embeddings_->class_token).expand({num_images, 1, config_.hidden});
  at::Tensor rows =
      at::cat({class_rows, embedded.view({num_images, side * side, config_.hidden})}, 1);
  rows = rows + LeafValues(embeddings_->positions);
  return ApplyNorm(rows.view({-1, config_.hidden}), embeddings_->norm);
}

at::Tensor Vit::RunLayers(at::Tensor rows) const {
  const std::int64_t length = config_.num_patches() + 1;
  if (rows.size(1) != config_.hidden || rows.size(0) % length != 0) {
    throw std::invalid_argument(name_ + ": expected a multiple of " + std::to_string(length) +
                                " rows of " + std::to_string(config_.hidden) + ", got " +
                                ToString(rows.sizes().vec()));
  }
  auto plan = c10::make_intrusive<AttentionPlan>();
  plan->sequences = rows.size(0) / length;
  plan->length = length;
  plan->heads = config_.heads / group_->size();
  plan->kv_heads = plan->heads;
  plan->head_dim = config_.hidden / config_.heads;
  plan->portable = numerics_.portable;
  plan->recompute = recompute_ == Recompute::kAttention;
  for (const Layer& layer : layers_) {
    const auto run = [this, &layer, plan](const at::Tensor& x) { return RunLayer(x, layer, plan); };
    rows = recompute_ == Recompute::kFull ? Recomputed(rows, layer.norm1.weight, run) : run(rows);
  }
  return rows;
}

at::Tensor Vit::RunLayer(const at::Tensor& rows, const Layer& layer,
                         const AttentionPlanPtr& plan) const {
  const at::Tensor qkv =
      Linear(ApplyNorm(rows, layer.norm1), layer.qkv, LinearCut::kOutputs, group_);
  const at::Tensor middle =
      rows + Linear(Attention(qkv, plan), layer.out, LinearCut::kInputs, group_);
  const at::Tensor wide =
      Linear(ApplyNorm(middle, layer.norm2), layer.fc1, LinearCut::kOutputs, group_);
  return middle + Linear(QuickGelu(wide), layer.fc2, LinearCut::kInputs, group_);
}

at::Tensor Vit::Features(const at::Tensor& rows) const {
  if (config_.class_token) return rows;
  const std::int64_t patches = config_.num_patches();
  const std::int64_t num_images = rows.size(0) / (patches + 1);
  return rows.view({num_images, patches + 1, config_.hidden})
      .narrow(1, 1, patches)
      .reshape({num_images * patches, config_.hidden});
}

}  // namespace troupe
