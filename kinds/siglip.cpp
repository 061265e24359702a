#include "kinds/siglip.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

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

static ForeignValues WriteForeignSiglip(const ModelConfig& model, const ModelConfig* source) {
  const auto& encoder = dynamic_cast<const SiglipConfig&>(model);
  ForeignValues values = {{"architectures", std::vector<std::string>{"SiglipVisionModel"}},
                          {"model_type", "siglip_vision_model"}};
  std::ranges::copy(WriteForeignEncoder(encoder, source), std::back_inserter(values));
  if (source == nullptr) values.emplace_back("vision_use_head", false);
  return values;
}

const ModuleKind kSiglip = {.word = "siglip",
                            .meaning = "SigLIP-style vision transformer",
                            .other_words = {"siglip_vision_model", "siglip2"},
                            .similar_words = {},
                            .make = [] { return Model(SiglipConfig()); },
                            .keys = [] { return PatchEncoderKeys(); },
                            .foreign_types = {"siglip_vision_model"},
                            .read_foreign = ReadForeignSiglip,
                            .write_foreign = WriteForeignSiglip,
                            .foreign_constants = EncoderConstants,
                            .foreign_names = VisionNames(),
                            .foreign_probe = "embeddings.patch_embedding.weight",
                            .foreign_roots = {"embeddings", "encoder", "post_layernorm", "head"},
                            .foreign_alone = {"vision_model."},
                            .foreign_in_whole = {"vision_tower.vision_model."},
                            .foreign_in_memory = {"model.vision_tower.vision_model."}};

void SiglipConfig::AddParameters(const StagePlace& stage, ParameterList& list) const {
  if (stage.first) {
    AddPatchWeight(list);
    list.AddBias("embeddings.patch_embedding", hidden);
    AddPositions(num_patches(), list);
  }
  PatchEncoder::AddParameters(stage, list);
}

}  // namespace troupe
