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

std::vector<Part> PartsOf(const HfConfig& whole) {
  if (!whole.Has("model_type")) {
    whole.Refuse("model_type", "expected " + SupportedTypes() + ", found none");
  }
  const std::string type = whole.Word("model_type", "");
  std::vector<Part> parts;
  if (const ModuleKind* const kind = KindOf(type)) parts.push_back({nullptr, kind});
  for (const PartKey& known : PartKeys()) {
    if (known.whole != type) continue;
    auto config = whole.Part(known.key);
    if (config == nullptr) whole.Refuse(known.key, "expected an object, found none");
    const std::string own = config->Word("model_type", known.usual_type);
    const ModuleKind* const kind = KindOf(own);
    parts.push_back({std::move(config), kind, type == "llava"});
  }
  if (parts.empty()) {
    whole.Refuse("model_type", "expected " + SupportedTypes() + ", got " + QuoteText(type));
  }
  return parts;
}

}  // namespace

FolderModule ReadFolderModule(const std::string& folder, const ModuleKind* kind) {
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
  return {whole.path(), std::move(model), whole.defaulted(), std::move(images)};
}

std::string NameIn(const ForeignNames& names, std::string_view own) {
  return std::string(own.starts_with("lm_head.") ? names.head : names.body) + std::string(own);
}

const ForeignNames* FindNames(const ModuleKind& kind,
                              const std::function<bool(const std::string& tensor)>& has) {
  const auto found = std::ranges::find_if(kind.foreign_names, [&](const ForeignNames& names) {
    return has(NameIn(names, kind.foreign_probe));
  });
  return found == kind.foreign_names.end() ? nullptr : &*found;
}

}  // namespace troupe
