#include "kinds/siglip.hpp"

namespace troupe {

/// Maps values in [0, 1] to [-1, 1].
static constexpr ImageField::Normalisation kCentred = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};

const ModuleKind kSiglip = {.word = "siglip",
                            .meaning = "SigLIP-style vision transformer",
                            .other_words = {"siglip_vision_model", "siglip2"},
                            .similar_words = {},
                            .make = [] { return Model(SiglipConfig()); },
                            .keys = [] { return PatchEncoderKeys(); }};

std::unique_ptr<const Field> SiglipConfig::field() const {
  return std::make_unique<ImageField>(image_size, kCentred);
}

void SiglipConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    AddPatchWeight(list);
    list.Add("embeddings.patch_embedding.bias", {hidden});
    AddPositions(num_patches(), list);
  }
  PatchEncoder::AddParameters(stage, list);
  if (stage.last) list.AddLayerNorm("post_layernorm", hidden);
}

std::int64_t SiglipConfig::KeptElements(const StagePlace& stage, const RankWork& work) const {
  const std::int64_t norm = stage.last ? work.samples * num_patches() * hidden : 0;
  return norm + PatchEncoder::KeptElements(stage, work);
}

}  // namespace troupe
