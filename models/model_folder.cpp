#include "models/model_folder.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "files/strict_json.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

std::string QuotedName(std::string_view name) { return QuoteText(std::string(name)); }

const ModuleKind* KindOf(std::string_view model_type) {
  for (const ModuleKind* kind : Kinds()) {
    if (std::ranges::find(kind->foreign_types, model_type) != kind->foreign_types.end())
      return kind;
  }
  return nullptr;
}

/// An object of config.json that describes a module.
struct Part {
  std::unique_ptr<const ForeignConfig> config;  ///< null: the file as a whole
  const ModuleKind* kind = nullptr;             ///< null: it is not supported
  bool of_llava = false;                        ///< the whole says which of its rows leave it
  std::string key = {};                         ///< of the object; "": the file
};

/// A key of a whole model, and the type of the module there if it states none.
struct PartKey {
  std::string_view whole;
  std::string key;
  std::string usual_type;
};
const std::vector<PartKey>& PartKeys() {
  static const std::vector<PartKey> kKeys = {
      {"clip", "vision_config", "clip_vision_model"},
      {"siglip", "vision_config", "siglip_vision_model"},
      {"llava", "vision_config", "clip_vision_model"},
      {"llava", "text_config", "llama"},
      {"llava_next", "vision_config", "clip_vision_model"},
      {"llava_next", "text_config", "llama"},
  };
  return kKeys;
}

std::string SupportedTypes() {
  std::vector<std::string> types;
  for (const ModuleKind* kind : Kinds()) {
    for (const std::string_view type : kind->foreign_types) types.push_back(QuotedName(type));
  }
  for (const PartKey& part : PartKeys()) {
    if (std::ranges::find(types, QuotedName(part.whole)) == types.end())
      types.push_back(QuotedName(part.whole));
  }
  return ListedWithOr(types);
}

/// Whether the file is of LLaVA's own code: the language model's keys, and others of the projector.
bool IsOriginalLlava(const HfConfig& whole, const std::string& type) {
  return type == "llava_llama" || (type == "llava" && !whole.Has("text_config"));
}

constexpr std::string_view kLlavaNext = "llava_next";

/// Whether the file is of a LLaVA with a `text_config`.
bool IsLlava(const std::string& type) { return type == "llava" || type == kLlavaNext; }

std::vector<Part> PartsOf(const HfConfig& whole) {
  if (!whole.Has("model_type")) {
    whole.Refuse("model_type", "expected " + SupportedTypes() + ", found none");
  }
  const std::string type = whole.Word("model_type", "");
  std::vector<Part> parts;
  if (const ModuleKind* const kind = KindOf(type)) parts.push_back({nullptr, kind});
  if (IsOriginalLlava(whole, type)) {
    parts.push_back({nullptr, KindOf("llama")});
    return parts;
  }
  for (const PartKey& known : PartKeys()) {
    if (known.whole != type) continue;
    auto config = whole.Part(known.key);
    if (config == nullptr) whole.Refuse(known.key, "expected an object, found none");
    const std::string own = config->Word("model_type", known.usual_type);
    const ModuleKind* const kind = KindOf(own);
    parts.push_back({std::move(config), kind, IsLlava(type), known.key});
  }
  if (parts.empty()) {
    whole.Refuse("model_type", "expected " + SupportedTypes() + ", got " + QuoteText(type));
  }
  return parts;
}

}  // namespace

FolderModule ReadFolderModule(const std::string& folder, const ModuleKind* kind,
                              std::optional<bool> emits_rows) {
  const HfConfig whole = HfConfig::Read(folder);
  std::vector<Part> parts = PartsOf(whole);
  std::vector<std::string> found;
  for (const Part& part : parts) {
    if (part.kind != nullptr) found.push_back("a " + QuotedName(part.kind->word));
  }
  std::vector<const Part*> meant;
  for (const Part& part : parts) {
    if (part.kind != nullptr && (kind == nullptr || part.kind == kind)) meant.push_back(&part);
  }
  if (meant.size() > 1 && emits_rows) {
    std::erase_if(
        meant, [&](const Part* part) { return part->kind->make()->emits_rows() != *emits_rows; });
  }
  if (meant.size() > 1) {
    whole.Refuse("model_type", "found " + Listed(found, " and ") + "; state `kind`");
  }
  if (meant.empty()) {
    for (const Part& part : parts) {
      if (part.kind != nullptr) continue;
      part.config->Refuse("model_type", "expected " + SupportedTypes() + ", got " +
                                            QuoteText(part.config->Word("model_type", "")));
    }
    whole.Refuse("model_type",
                 "expected a " + QuotedName(kind->word) + ", found " + Listed(found, " and "));
  }
  const Part& part = *meant.front();
  Model model = part.kind->make();
  part.kind->read_foreign(part.config == nullptr ? whole : *part.config,
                          part.of_llava ? &whole : nullptr, *model);
  FolderImages images = ReadImageProcessor(folder, *model);
  const ImageRecipe* const recipe = model->images();
  if (part.of_llava && recipe != nullptr && recipe->has_tiles() && !IsLlavaNext(folder)) {
    whole.Refuse("model_type", "expected " + QuotedName(kLlavaNext) +
                                   ", since its image processor cuts tiles, got " +
                                   QuoteText(whole.Word("model_type", "")));
  }
  if (images.file.empty() && recipe != nullptr && recipe->has_tiles()) images.file = whole.path();
  return {whole.path(), part.key, std::move(model), whole.defaulted(), std::move(images)};
}

std::vector<const ModuleKind*> KindsInFolder(const std::string& folder) {
  const HfConfig whole = HfConfig::Read(folder);
  std::vector<const ModuleKind*> kinds;
  for (const Part& part : PartsOf(whole)) kinds.push_back(part.kind);
  return kinds;
}

bool IsLlavaNext(const std::string& folder) {
  return HfConfig::Read(folder).Word("model_type", "") == kLlavaNext;
}

FolderProjector ReadFolderProjector(const std::string& folder) {
  const HfConfig whole = HfConfig::Read(folder);
  const std::string type = whole.Word("model_type", "");
  if (!IsLlava(type) && type != "llava_llama") {
    whole.Refuse("model_type",
                 "expected a whole model, \"llava\", \"llava_next\" or \"llava_llama\", got " +
                     QuoteText(type));
  }
  return {whole.path(), ReadForeignProjector(whole), whole.defaulted()};
}

std::string NameIn(const ForeignNames& names, std::string_view own) {
  return std::string(own.starts_with("lm_head.") ? names.head : names.body) + std::string(own);
}

std::string SpelledFor(const ModelConfig& model, const std::string& name) {
  const auto spell = model.kind().foreign_spelling;
  return spell == nullptr ? name : spell(model, name);
}

std::string OwnPart(const ModuleKind& kind, const ForeignNames& names, std::string_view name) {
  for (const std::string_view prefix : {names.body, names.head}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::string_view root = rest.substr(0, rest.find('.'));
    const bool known = std::ranges::find(kind.foreign_roots, root) != kind.foreign_roots.end();
    if (known && NameIn(names, rest) == name) return std::string(rest);
  }
  return "";
}

const ForeignNames* FindNames(const ModuleKind& kind,
                              const std::function<bool(const std::string& tensor)>& has) {
  const auto found = std::ranges::find_if(kind.foreign_names, [&](const ForeignNames& names) {
    return has(NameIn(names, kind.foreign_probe));
  });
  return found == kind.foreign_names.end() ? nullptr : &*found;
}

}  // namespace troupe
