#include "kinds/vit.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

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

static ForeignValues WriteForeignVit(const ModelConfig& model, const ModelConfig* source) {
  const auto& encoder = dynamic_cast<const VitConfig&>(model);
  ForeignValues values = {{"architectures", std::vector<std::string>{"CLIPVisionModel"}},
                          {"model_type", "clip_vision_model"}};
  std::ranges::copy(WriteForeignEncoder(encoder, source), std::back_inserter(values));
  return values;
}

/// CLIP's first norm is misspelt in all that is published. A folder that spells it right is read, and
/// written, as if it did not.
static std::string AsPublished(const std::string& name) {
  for (const std::string end : {"weight", "bias"}) {
    const std::string right = "vision_model.pre_layernorm." + end;
    if (!name.ends_with(right)) continue;
    return name.substr(0, name.size() - right.size()) + "vision_model.pre_layrnorm." + end;
  }
  return name;
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
    .write_foreign = WriteForeignVit,
    .foreign_constants = EncoderConstants,
    .foreign_names = VisionNames(),
    .foreign_probe = "embeddings.patch_embedding.weight",
    .foreign_roots = {"embeddings", "pre_layrnorm", "encoder", "post_layernorm"},
    .foreign_alone = {"vision_model."},
    .foreign_in_whole = {"vision_tower.vision_model."},
    .own_spelling = AsPublished,
    .foreign_in_memory = {"model.vision_tower.vision_model."}};

void VitConfig::Check(ModuleCheck& check) const {
  PatchEncoder::Check(check);
  if (!class_token) return;
  const auto refuse = [&](const std::string& reason) {
    check.Add(check.KeyOf("class_token"),
              "expected false, since " + reason + " and the class token has no place in them");
  };
  if (joined > 1) return refuse("the projector joins squares of patches");
  if (image_recipe.has_tiles()) refuse("the rows of tiles become lines of patches");
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
