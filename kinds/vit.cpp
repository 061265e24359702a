#include "kinds/vit.hpp"

namespace troupe {

/// CLIP's training values.
static constexpr ImageField::Normalisation kClip = {{0.48145466, 0.4578275, 0.40821073},
                                                    {0.26862954, 0.26130258, 0.27577711}};

static std::vector<ModelKey> VitKeys() {
  return PatchEncoderKeys({
      {"feature_layer", &VitConfig::feature_layer, Range{-kMaxCount, kMaxCount},
       "Whose output is the feature: 0 = the embedding, n = layer n, -1 = the last layer, -2 = the "
       "last but one. Later layers are not built."},
      {"class_token", &VitConfig::class_token,
       "Whether the feature keeps the row of the class token."},
  });
}

const ModuleKind kVit = {
    .word = "vit",
    .meaning = "CLIP-style vision transformer",
    .other_words = {"clip", "clip_vision_model", "vision_transformer", "image_encoder"},
    .similar_words = {},
    .make = [] { return Model(VitConfig()); },
    .keys = VitKeys};

void VitConfig::Check(ModuleCheck& check) const {
  PatchEncoder::Check(check);
  const std::string key = check.KeyOf("feature_layer");
  if (!check.Good({key, check.KeyOf("layers")})) return;
  if (feature_layer >= -layers - 1 && feature_layer <= layers) return;
  check.Add(key, "expected " + std::to_string(-layers - 1) + " to " + std::to_string(layers) +
                     " (the embedding and " + std::to_string(layers) + " layers), got " +
                     std::to_string(feature_layer));
}

std::unique_ptr<const Field> VitConfig::field() const {
  return std::make_unique<ImageField>(image_size, kClip);
}

void VitConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    list.AddNormal("embeddings.class_embedding", {hidden}, InverseRoot(hidden));
    AddPatchWeight(list);
    AddPositions(num_patches() + 1, list);
    list.AddLayerNorm("pre_layrnorm", hidden);
  }
  PatchEncoder::AddParameters(stage, list);
}

}  // namespace troupe
