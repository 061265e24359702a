#include "kinds/siglip.hpp"

namespace troupe {

/// Maps values in [0, 1] to [-1, 1].
static constexpr ImageField::Normalisation kCentred = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};

static std::vector<ModelKey> SiglipKeys() {
  return {
      {"image_size", &SiglipConfig::image_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of its images."},
      {"patch_size", &SiglipConfig::patch_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of a patch; divides image_size."},
      {"hidden", &SiglipConfig::hidden, kRequired, kCount, "Width of a row; a multiple of heads."},
      {"layers", &SiglipConfig::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
      {"heads", &SiglipConfig::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
      {"mlp_hidden", &SiglipConfig::mlp_hidden, kCount, Otherwise{"4 * hidden"},
       "Width inside the MLP; a multiple of tp."},
      {"norm_epsilon", &SiglipConfig::norm_epsilon, kPositive,
       "Added to the variance in LayerNorm."},
  };
}

const ModuleKind kSiglip = {.word = "siglip",
                            .meaning = "SigLIP-style vision transformer",
                            .other_words = {"siglip_vision_model", "siglip2"},
                            .similar_words = {},
                            .make = [] { return Model(SiglipConfig()); },
                            .keys = SiglipKeys};

void SiglipConfig::FillDefaults(const std::function<bool(const char* key)>& stated) {
  if (!stated("mlp_hidden")) mlp_hidden = 4 * hidden;
}

void SiglipConfig::Check(ModuleCheck& check) const {
  check.ExpectMultiple(check.Own("image_size", image_size), check.Own("patch_size", patch_size));
  CheckEncoderSizes(sizes(), check);
}

std::string SiglipConfig::WhyNotFrom(const ModelConfig&) const {
  return "reads images; expected a module that takes rows, such as a \"llama\" module";
}

std::unique_ptr<const Field> SiglipConfig::field() const {
  return std::make_unique<ImageField>(image_size, kCentred);
}

ExtraCosts SiglipConfig::extra_costs() const {
  return EmbeddingCost(sizes(), 3 * patch_size * patch_size);
}

void SiglipConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    list.AddNormal("embeddings.patch_embedding.weight", {hidden, 3, patch_size, patch_size},
                   InverseRoot(3 * patch_size * patch_size));
    list.Add("embeddings.patch_embedding.bias", {hidden});
    list.AddNormal("embeddings.position_embedding.weight", {num_patches(), hidden},
                   InverseRoot(hidden));
  }
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    AddEncoderLayer(sizes(), "encoder.layers." + std::to_string(layer), list);
  }
  if (stage.last) list.AddLayerNorm("post_layernorm", hidden);
}

void SiglipConfig::CountFlops(const StagePlace& stage, const StepShape& shape,
                              const std::string& name, FlopCounter& count) const {
  const auto items = shape.items.find(name);
  const std::int64_t images = items == shape.items.end() ? 0 : items->second;
  if (stage.first) {
    count.AddLinear(images * num_patches(), hidden, 3 * patch_size * patch_size, /*first=*/true);
  }
  CountEncoderLayers(sizes(), stage.layers.size(), images, num_patches(), count);
}

std::int64_t SiglipConfig::KeptElements(const StagePlace& stage, const RankWork& work) const {
  const std::int64_t norm = stage.last ? work.samples * num_patches() * hidden : 0;
  return norm + KeptOfEncoderLayers(sizes(), stage.layers.size(), num_patches(), work);
}

}  // namespace troupe
