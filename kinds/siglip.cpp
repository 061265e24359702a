#include "kinds/siglip.hpp"

namespace troupe {

/// Maps values in [0, 1] to [-1, 1].
static constexpr ImageField::Normalisation kCentred = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};

static void ReadForeignSiglip(const ForeignConfig& config, const ForeignConfig* whole,
                              ModelConfig& model) {
  auto& encoder = dynamic_cast<SiglipConfig&>(model);
  encoder.image_size = 224;
  encoder.patch_size = 16;
  ReadForeignEncoder(config, whole, encoder);
  if (whole == nullptr || ReadKeepsFirstRow(*whole)) return;
  whole->Refuse("vision_feature_select_strategy",
                "expected \"full\": \"default\" drops the first patch of an image, since a SigLIP "
                "has no class token");
}

const ModuleKind kSiglip = {.word = "siglip",
                            .meaning = "SigLIP-style vision transformer",
                            .other_words = {"siglip_vision_model", "siglip2"},
                            .similar_words = {},
                            .make = [] { return Model(SiglipConfig()); },
                            .keys = [] { return PatchEncoderKeys(); },
                            .foreign_types = {"siglip_vision_model"},
                            .read_foreign = ReadForeignSiglip,
                            .foreign_names = VisionNames(),
                            .foreign_probe = "embeddings.patch_embedding.weight"};

std::unique_ptr<const Field> SiglipConfig::field() const {
  return std::make_unique<ImageField>(image_size, kCentred);
}

void SiglipConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    AddPatchWeight(list);
    list.AddBias("embeddings.patch_embedding", hidden);
    AddPositions(num_patches(), list);
  }
  PatchEncoder::AddParameters(stage, list);
}

}  // namespace troupe
