#include "kinds/vit.hpp"

namespace troupe {

/// CLIP's training values.
static constexpr ImageField::Normalisation kClip = {{0.48145466, 0.4578275, 0.40821073},
                                                    {0.26862954, 0.26130258, 0.27577711}};

static std::vector<ModelKey> VitKeys() {
  return PatchEncoderKeys({
      {"class_token", &VitConfig::class_token,
       "Whether the feature keeps the row of the class token."},
  });
}

static void ReadForeignVit(const ForeignConfig& config, const ForeignConfig* whole,
                           ModelConfig& model) {
  auto& encoder = dynamic_cast<VitConfig&>(model);
  encoder.image_size = 224;
  encoder.patch_size = 32;
  ReadForeignEncoder(config, whole, encoder);
  encoder.class_token = whole != nullptr && ReadKeepsFirstRow(*whole);
}

const ModuleKind kVit = {
    .word = "vit",
    .meaning = "CLIP-style vision transformer",
    .other_words = {"clip", "clip_vision_model", "vision_transformer", "image_encoder"},
    .similar_words = {},
    .make = [] { return Model(VitConfig()); },
    .keys = VitKeys,
    .foreign_types = {"clip_vision_model"},
    .read_foreign = ReadForeignVit,
    .foreign_names = VisionNames(),
    .foreign_probe = "embeddings.patch_embedding.weight"};

std::unique_ptr<const Field> VitConfig::field() const {
  return std::make_unique<ImageField>(image_size, kClip);
}

void VitConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    list.AddNormal("embeddings.class_embedding", {hidden}, InverseRoot(hidden)).traits = {
        Trait::kClassEmbedding};
    AddPatchWeight(list);
    AddPositions(num_patches() + 1, list);
    list.AddLayerNorm("pre_layrnorm", hidden);
  }
  PatchEncoder::AddParameters(stage, list);
}

}  // namespace troupe
