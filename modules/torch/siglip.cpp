#include "modules/torch/siglip.hpp"

#include <optional>
#include <utility>

#include "kinds/siglip.hpp"
#include "modules/torch/encoder_layers.hpp"

namespace troupe {
namespace {

/// n images, P patches, H hidden; rows are [n * P, H].
class Siglip : public Encoder {
 public:
  Siglip(const ModuleConfig& module, int pp, const ParameterStore& store, const BodyGroups& groups)
      : config_(module.As<SiglipConfig>()),
        numerics_(store.numerics()),
        group_(groups.tensor),
        layers_(module, pp, store, groups) {
    const std::string embeddings = module.name + ".embeddings.";
    if (pp > 0) return;
    embeddings_ = Embeddings{.patch = LoadLinear(embeddings + "patch_embedding", store),
                             .positions = store.Leaf(embeddings + "position_embedding.weight")};
  }

  at::Tensor Embed(const FieldTensors& items) const override {
    const at::Tensor patches =
        EmbedPatches(items.values, config_, layers_.own(), embeddings_->patch, numerics_, group_);
    const at::Tensor positions = layers_.own().Of(LeafValues(embeddings_->positions), 0, 0);
    return (patches + positions).view({-1, config_.hidden});
  }

  at::Tensor RunLayers(at::Tensor rows) const override { return layers_.Run(std::move(rows)); }

  at::Tensor Features(const at::Tensor& rows) const override { return layers_.Finish(rows); }
  std::optional<std::vector<std::int64_t>> RowNumbers(std::int64_t num_rows) const override {
    return layers_.RowNumbers(num_rows);
  }

 private:
  struct Embeddings {
    LinearWeights patch;   ///< [H, 3 p p]
    at::Tensor positions;  ///< [P, H]
  };

  SiglipConfig config_;
  Numerics numerics_;
  TensorGroupPtr group_;
  EncoderLayers layers_;
  std::optional<Embeddings> embeddings_;  ///< of the first stage
};

}  // namespace

const TorchKind kTorchSiglip = {.kind = &kSiglip,
                                .make_encoder = MakeEncoder<Siglip>,
                                .make_body = nullptr,
                                .reference = {.add_parameters = reference::AddSiglip,
                                              .encode = reference::EncodeSiglip,
                                              .logits = nullptr}};

}  // namespace troupe
