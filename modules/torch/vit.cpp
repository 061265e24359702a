#include "modules/torch/vit.hpp"

#include <optional>
#include <utility>

#include "kinds/vit.hpp"
#include "modules/torch/encoder_layers.hpp"
#include "modules/torch/layer_norm.hpp"

namespace troupe {
namespace {

/// n images, P patches, H hidden; of one rank, rows are [n * (P + 1), H] with the class token first in
/// each image.
class Vit : public Encoder {
 public:
  Vit(const ModuleConfig& module, int pp, const ParameterStore& store, const BodyGroups& groups)
      : config_(module.As<VitConfig>()),
        numerics_(store.numerics()),
        group_(groups.tensor),
        layers_(module, pp, store, groups) {
    if (pp > 0) return;
    const std::string embeddings = module.name + ".embeddings.";
    embeddings_ = Embeddings{
        .class_token = store.Leaf(embeddings + "class_embedding"),
        .patch = {.weight = store.Leaf(embeddings + "patch_embedding.weight"), .bias = {}},
        .positions = store.Leaf(embeddings + "position_embedding.weight"),
        .norm = LoadLayerNorm(module.name + ".pre_layrnorm", store)};
  }

  at::Tensor Embed(const FieldTensors& items) const override {
    const OwnTokens& own = layers_.own();
    const std::int64_t num_images = items.values.size(0);
    const at::Tensor patches =
        EmbedPatches(items.values, config_, own, embeddings_->patch, numerics_, group_);
    const at::Tensor class_rows =
        LeafValues(embeddings_->class_token)
            .expand({num_images, own.size() - patches.size(1), config_.hidden});
    const at::Tensor rows =
        at::cat({class_rows, patches}, 1) + own.Of(LeafValues(embeddings_->positions), 0, 0);
    return LayerNorm(rows.view({-1, config_.hidden}), embeddings_->norm.weight,
                     embeddings_->norm.bias, config_.norm_epsilon);
  }

  at::Tensor RunLayers(at::Tensor rows) const override { return layers_.Run(std::move(rows)); }

  at::Tensor Features(const at::Tensor& rows) const override { return layers_.Finish(rows); }
  std::optional<std::vector<std::int64_t>> RowNumbers(std::int64_t num_rows) const override {
    return layers_.RowNumbers(num_rows);
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
