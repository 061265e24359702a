#include "modules/torch/vit.hpp"

#include <optional>
#include <utility>

#include "kinds/vit.hpp"
#include "modules/torch/encoder_layers.hpp"
#include "modules/torch/layer_norm.hpp"

namespace troupe {
namespace {

/// n images, P patches, H hidden; rows are [n * (P + 1), H] with the class token first in each
/// image.
class Vit : public Encoder {
 public:
  Vit(const ModuleConfig& module, int pp, const ParameterStore& store, const TensorGroupPtr& group)
      : config_(module.As<VitConfig>()),
        numerics_(store.numerics()),
        group_(group),
        layers_(module, pp, store, group) {
    if (pp > 0) return;
    const std::string embeddings = module.name + ".embeddings.";
    embeddings_ = Embeddings{
        .class_token = store.Leaf(embeddings + "class_embedding"),
        .patch = {.weight = store.Leaf(embeddings + "patch_embedding.weight"), .bias = {}},
        .positions = store.Leaf(embeddings + "position_embedding.weight"),
        .norm = LoadLayerNorm(module.name + ".pre_layrnorm", store)};
  }

  at::Tensor Embed(const FieldTensors& items) const override {
    const std::int64_t num_images = items.values.size(0);
    const at::Tensor patches =
        EmbedPatches(items.values, config_, embeddings_->patch, numerics_, group_);
    const at::Tensor class_rows =
        LeafValues(embeddings_->class_token).expand({num_images, 1, config_.hidden});
    const at::Tensor rows = at::cat({class_rows, patches}, 1) + LeafValues(embeddings_->positions);
    return LayerNorm(rows.view({-1, config_.hidden}), embeddings_->norm.weight,
                     embeddings_->norm.bias, config_.norm_epsilon);
  }

  at::Tensor RunLayers(at::Tensor rows) const override { return layers_.Run(std::move(rows)); }

  /// Without the class token's rows unless the feature keeps them.
  at::Tensor Features(const at::Tensor& layered) const override {
    const at::Tensor rows = layers_.Finish(layered);
    if (config_.class_token) return rows;
    const std::int64_t patches = config_.num_patches();
    const std::int64_t num_images = rows.size(0) / (patches + 1);
    return JoinPatches(rows.view({num_images, patches + 1, config_.hidden})
                           .narrow(1, 1, patches)
                           .reshape({num_images * patches, config_.hidden}),
                       config_);
  }

 private:
  struct Embeddings {
    at::Tensor class_token;  ///< [H]
    LinearWeights patch;     ///< [H, 3 p p]
    at::Tensor positions;    ///< [P + 1, H]
    LayerNormWeights norm;
  };

  VitConfig config_;
  Numerics numerics_;
  TensorGroupPtr group_;
  EncoderLayers layers_;
  std::optional<Embeddings> embeddings_;  ///< of the first stage
};

}  // namespace

const TorchKind kTorchVit = {
    .kind = &kVit,
    .make_encoder = MakeEncoder<Vit>,
    .make_body = nullptr,
    .reference = {
        .add_parameters = reference::AddVit, .encode = reference::EncodeVit, .logits = nullptr}};

}  // namespace troupe
