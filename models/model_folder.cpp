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
  const ModuleKind* kind = nullptr;
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
    if (kind == nullptr) {
      config->Refuse("model_type", "expected " + SupportedTypes() + ", got " + QuoteText(own));
    }
    parts.push_back({std::move(config), kind});
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
  const std::string found =
      Listed(parts, " and ", [](const Part& part) { return "a " + QuotedName(part.kind->word); });
  if (kind != nullptr) std::erase_if(parts, [&](const Part& part) { return part.kind != kind; });
  if (parts.size() != 1) {
    whole.Refuse("model_type", parts.empty()
                                   ? "expected a " + QuotedName(kind->word) + ", found " + found
                                   : "found " + found + "; say by `kind` which is meant");
  }
  const Part& part = parts.front();
  Model model = part.kind->make();
  const bool alone = part.config == nullptr;
  part.kind->read_foreign(alone ? whole : *part.config, alone ? nullptr : &whole, *model);
  return {whole.path(), std::move(model), whole.defaulted()};
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
