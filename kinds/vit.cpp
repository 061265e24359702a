#include "kinds/vit.hpp"

namespace troupe {
namespace {

/// CLIP's training values.
constexpr ImageField::Normalisation kClip = {{0.48145466, 0.4578275, 0.40821073},
                                             {0.26862954, 0.26130258, 0.27577711}};

std::vector<ModelKey> VitKeys() {
  return {
      {"image_size", &VitConfig::image_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of its images."},
      {"patch_size", &VitConfig::patch_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of a patch; divides image_size."},
      {"hidden", &VitConfig::hidden, kRequired, kCount, "Width of a row; a multiple of heads."},
      {"layers", &VitConfig::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
      {"heads", &VitConfig::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
      {"mlp_hidden", &VitConfig::mlp_hidden, kCount, Otherwise{"4 * hidden"},
       "Width inside the MLP; a multiple of tp."},
      {"feature_layer", &VitConfig::feature_layer, Range{-kMaxCount, kMaxCount},
       "Whose output is the feature: 0 = the embedding, n = layer n, -1 = the last layer, -2 = "
       "the last but one. Later layers are not built."},
      {"class_token", &VitConfig::class_token,
       "Whether the feature keeps the row of the class token."},
      {"norm_epsilon", &VitConfig::norm_epsilon, kPositive, "Added to the variance in LayerNorm."},
  };
}

void CheckFeatureLayer(const VitConfig& vit, ModuleCheck& check) {
  const std::string key = check.KeyOf("feature_layer");
  if (!check.Good({key, check.KeyOf("layers")})) return;
  const std::int64_t layers = vit.layers;
  if (vit.feature_layer >= -layers - 1 && vit.feature_layer <= layers) return;
  check.Add(key, "expected " + std::to_string(-layers - 1) + " to " + std::to_string(layers) +
                     " (the embedding and " + std::to_string(layers) + " layers), got " +
                     std::to_string(vit.feature_layer));
}

}  // namespace

const ModuleKind kVit = {
    .word = "vit",
    .meaning = "CLIP-style vision transformer",
    .other_words = {"clip", "clip_vision_model", "vision_transformer", "image_encoder"},
    .similar_words = {},
    .make = [] { return Model(VitConfig()); },
    .keys = VitKeys};

void VitConfig::FillDefaults(const std::function<bool(const char* key)>& stated) {
  if (!stated("mlp_hidden")) mlp_hidden = 4 * hidden;
}

void VitConfig::Check(ModuleCheck& check) const {
  check.ExpectMultiple(check.Own("image_size", image_size), check.Own("patch_size", patch_size));
  CheckEncoderSizes(sizes(), check);
  CheckFeatureLayer(*this, check);
}

std::string VitConfig::WhyNotFrom(const ModelConfig&) const {
  return "reads images; expected a module that takes rows, such as a \"llama\" module";
}

std::unique_ptr<const Field> VitConfig::field() const {
  return std::make_unique<ImageField>(image_size, kClip);
}

std::optional<Layers> VitConfig::split_layers() const {
  return Layers{built_layers(), "up to feature_layer"};
}

ExtraCosts VitConfig::extra_costs() const {
  return EmbeddingCost(sizes(), 3 * patch_size * patch_size);
}

void VitConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    const double std = InverseRoot(hidden);
    list.AddNormal("embeddings.class_embedding", {hidden}, std);
    list.AddNormal("embeddings.patch_embedding.weight", {hidden, 3, patch_size, patch_size},
                   InverseRoot(3 * patch_size * patch_size));
    list.AddNormal("embeddings.position_embedding.weight", {num_patches() + 1, hidden}, std);
    list.AddLayerNorm("pre_layrnorm", hidden);
  }
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    AddEncoderLayer(sizes(), "encoder.layers." + std::to_string(layer), list);
  }
}

void VitConfig::CountFlops(const StagePlace& stage, const StepShape& shape, const std::string& name,
                           FlopCounter& count) const {
  const auto items = shape.items.find(name);
  const std::int64_t images = items == shape.items.end() ? 0 : items->second;
  if (stage.first) {
    count.AddLinear(images * num_patches(), hidden, 3 * patch_size * patch_size, /*first=*/true);
  }
  CountEncoderLayers(sizes(), stage.layers.size(), images, num_patches() + 1, count);
}

std::int64_t VitConfig::KeptElements(const StagePlace& stage, const RankWork& work) const {
  return KeptOfEncoderLayers(sizes(), stage.layers.size(), num_patches() + 1, work);
}

}  // namespace troupe
