#include "models/write_config.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "kinds/siglip.hpp"
#include "kinds/vit.hpp"
#include "models/model_folder.hpp"

namespace troupe {

using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson ToJson(const ForeignValue& value) {
  return std::visit([](const auto& held) { return OrderedJson(held); }, value);
}

/// Sets the value of a dotted key.
void Set(OrderedJson& json, const std::string& key, const ForeignValue& value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) {
    json[key] = ToJson(value);
    return;
  }
  OrderedJson& part = json[key.substr(0, dot)];
  if (!part.is_object()) part = OrderedJson::object();
  Set(part, key.substr(dot + 1), value);
}

OrderedJson ReadConfig(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  HfConfig::Read(folder);  // checks it
  return OrderedJson::parse(ReadWholeFile(path));
}

/// The object that describes a module, with the keys that the run changed.
OrderedJson PartOf(const ModuleToWrite& module) {
  const ModuleKind& kind = module.model.kind();
  if (module.folder.empty()) {
    OrderedJson json = OrderedJson::object();
    for (const auto& [key, value] : kind.write_foreign(module.model, nullptr))
      Set(json, key, value);
    json["torch_dtype"] = module.dtype_word;
    // Where config.json states none, transformers has those of the family's first model.
    if (module.bos) json["bos_token_id"] = *module.bos;
    if (module.eos) json["eos_token_id"] = *module.eos;
    return json;
  }
  const FolderModule source = ReadFolderModule(module.folder, &kind);
  const ForeignValues before = kind.write_foreign(*source.model, &*source.model);
  const ForeignValues now = kind.write_foreign(module.model, &*source.model);
  OrderedJson json = ReadConfig(module.folder);
  if (!source.part.empty()) json = json[source.part];
  // LLaVA's own code writes a language model's keys under its own model_type.
  const std::string type = json.value("model_type", "");
  const bool own_type =
      !type.empty() && std::ranges::find(kind.foreign_types, type) == kind.foreign_types.end();
  for (const auto& [key, value] : now) {
    const bool names_type = key == "model_type" || key == "architectures";
    const bool changed = std::ranges::find(before, std::pair(key, value)) == before.end();
    if (changed || (own_type && names_type)) Set(json, key, value);
  }
  return json;
}

const PatchEncoder* EncoderOf(const ModelConfig& model) {
  return dynamic_cast<const PatchEncoder*>(&model);
}

/// The layer whose rows leave, in the folder that is written: counted from the end of its layers,
/// which are those of the source.
std::int64_t FeatureLayer(const ModuleToWrite& vision) {
  if (vision.folder.empty()) return -1;
  const FolderModule source = ReadFolderModule(vision.folder, &vision.model.kind());
  return EncoderOf(vision.model)->built_layers() - EncoderOf(*source.model)->layers - 1;
}

/// "full": the first row of an image is kept.
const char* SelectStrategy(const ModelConfig& vision) {
  const auto* const vit = dynamic_cast<const VitConfig*>(&vision);
  return vit == nullptr || vit->class_token ? "full" : "default";
}

bool HasTiles(const ModelConfig& vision) { return vision.tile_side() > 0; }

/// The grids of tiles in pixels: [height, width] of each.
OrderedJson Pinpoints(const ImageRecipe& recipe, std::int64_t size) {
  OrderedJson pinpoints = OrderedJson::array();
  for (const TileGrid& grid : recipe.grids) {
    pinpoints.push_back({grid.rows * size, grid.columns * size});
  }
  return pinpoints;
}

std::string Text(const OrderedJson& json) { return json.dump(2) + "\n"; }

}  // namespace

bool IsWritable(const ModuleKind& kind) { return kind.write_foreign != nullptr; }

std::string ModuleConfigJson(const ModuleToWrite& module) { return Text(PartOf(module)); }

std::string LlavaClass(const ModelConfig& vision) {
  return HasTiles(vision) ? "LlavaNextForConditionalGeneration" : "LlavaForConditionalGeneration";
}

std::string WhyNoLlava(const ModelConfig& vision, const ProjectorShape& projector,
                       const ModelConfig& language) {
  const PatchEncoder* const encoder = EncoderOf(vision);
  if (encoder == nullptr) return "its encoder does not read images; expected a vision encoder";
  if (!IsWritable(language.kind())) return "expected a language model of a supported family";
  if (encoder->final_norm) {
    return "its encoder norms the feature; expected modules.*.final_norm = false";
  }
  if (projector.kind != ProjectorKind::kMlp2) {
    return "transformers has no LLaVA with its projector; expected kind = \"mlp2\"";
  }
  if (projector.hidden != language.row_width()) {
    return "its projector is " + std::to_string(projector.hidden) +
           " wide inside; expected the width of the language model, " +
           std::to_string(language.row_width());
  }
  return "";
}

std::string LlavaConfigJson(const ModuleToWrite& vision, const ModuleToWrite& language,
                            const SpecialTokens& tokens, const std::string& whole) {
  OrderedJson json = whole.empty() ? OrderedJson::object() : ReadConfig(whole);
  const auto set = [&json](const char* key, OrderedJson value) {
    if (!json.contains(key) || json[key] != value) json[key] = std::move(value);
  };
  set("architectures", {LlavaClass(vision.model)});
  set("model_type", HasTiles(vision.model) ? "llava_next" : "llava");
  if (HasTiles(vision.model)) {
    const PatchEncoder& encoder = *EncoderOf(vision.model);
    set("image_grid_pinpoints", Pinpoints(encoder.image_recipe, encoder.image_size));
  } else {
    json.erase("image_grid_pinpoints");
    json.erase("use_image_newline_parameter");
  }
  if (whole.empty()) {
    set("image_token_index", tokens.image);
    if (tokens.pad) set("pad_token_id", *tokens.pad);
    set("projector_hidden_act", "gelu");
    set("multimodal_projector_bias", true);
    set("image_seq_length", EncoderOf(vision.model)->rows_per_square());
    set("torch_dtype", language.dtype_word);
  }
  const auto set_unless_default = [&](const char* key, const OrderedJson& value,
                                      const OrderedJson& usual) {
    if (json.contains(key) || value != usual || whole.empty()) set(key, value);
  };
  set_unless_default("vision_feature_layer", FeatureLayer(vision), -2);
  set_unless_default("vision_feature_select_strategy", SelectStrategy(vision.model), "default");
  set("vision_config", PartOf(vision));
  OrderedJson text = PartOf(language);
  if (whole.empty() && text.value("tie_word_embeddings", false)) set("tie_word_embeddings", true);
  set("text_config", std::move(text));
  return Text(json);
}

std::string LlavaProcessorJson(const ModelConfig& vision) {
  const auto* const encoder = EncoderOf(vision);
  const bool class_row = encoder->sequence_length() > encoder->num_patches();
  return Text({{"image_token", "<image>"},
               {"num_additional_image_tokens", class_row ? 1 : 0},
               {"patch_size", encoder->patch_size},
               {"processor_class", HasTiles(vision) ? "LlavaNextProcessor" : "LlavaProcessor"},
               {"vision_feature_select_strategy", SelectStrategy(vision)}});
}

std::string ImageProcessorJson(const ModuleToWrite& module) {
  const auto field = module.model.field();
  const auto* const images = dynamic_cast<const ImageField*>(field.get());
  if (images == nullptr) return "";
  const ImageRecipe& recipe = images->recipe();
  if (!module.folder.empty()) {
    const FolderModule source = ReadFolderModule(module.folder, &module.model.kind());
    const auto before = source.model->field();
    const auto* const same = dynamic_cast<const ImageField*>(before.get());
    const bool stated = !source.images.file.empty() && source.images.file != source.file;
    if (stated && same != nullptr && same->recipe() == recipe) return "";
  }
  const std::int64_t size = images->size();
  const OrderedJson square = {{"height", size}, {"width", size}};
  const bool stretches = recipe.fit == ImageFit::kStretch;
  const bool pads = recipe.fit == ImageFit::kPad;
  OrderedJson json = {{"image_processor_type", stretches            ? "SiglipImageProcessor"
                                               : pads               ? "LlavaImageProcessor"
                                               : recipe.has_tiles() ? "LlavaNextImageProcessor"
                                                                    : "CLIPImageProcessor"},
                      {"do_convert_rgb", true},
                      {"do_resize", true},
                      {"size", stretches ? square : OrderedJson{{"shortest_edge", size}}},
                      {"resample", recipe.resampling == Resampling::kBicubic ? 3 : 2},
                      {"do_rescale", true},
                      {"rescale_factor", 1.0 / 255.0},
                      {"do_normalize", true},
                      {"image_mean", recipe.mean},
                      {"image_std", recipe.deviation}};
  if (!stretches) {
    json["do_center_crop"] = true;
    json["crop_size"] = square;
  }
  if (pads) json["do_pad"] = true;
  if (recipe.has_tiles()) json["image_grid_pinpoints"] = Pinpoints(recipe, size);
  return Text(json);
}

}  // namespace troupe
