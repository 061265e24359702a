#include <algorithm>
#include <span>
#include <utility>

#include "configs/key_value.hpp"
#include "configs/paths.hpp"
#include "configs/steps.hpp"
#include "models/model_folder.hpp"

namespace troupe {

using Kind = TomlValue::Kind;

static const TomlValue* FindString(const TomlValue& table, std::string_view key) {
  const TomlEntry* const entry = table.Find(key);
  return entry != nullptr && entry->value.Is(Kind::kString) ? &entry->value : nullptr;
}

/// Returns `KEY = TEXT`, read at `place`.
static TomlEntry EntryAt(const Place& place, const std::string& key, const std::string& text) {
  const auto parsed = ParseToml(key + " = " + text, place);
  TomlEntry entry = std::get<TomlValue>(parsed).entries.at(0);
  entry.place = place;
  entry.value.place = place;
  return entry;
}

/// Returns the file of a folder that gives the key; "" if none does.
static std::string FileOf(const FolderModule& read, std::string_view key) {
  const bool of_images = std::ranges::find(kImageRecipeKeys, key) != kImageRecipeKeys.end();
  return of_images ? read.images.file : read.file;
}

/// Returns the table of a module with the keys of its kind that a folder gives.
static TomlValue TableOf(const FolderModule& read) {
  const Place place{read.file};
  Config config;
  ModuleConfig module;
  module.model = read.model;
  TomlValue table;
  table.place = place;
  table.entries.push_back(EntryAt(place, "kind", Quoted(read.model.kind().word)));
  for (const KeySpec& key : Keys()) {
    if (key.table != "modules.*" || key.kinds != Only(read.model.kind())) continue;
    const std::string text = PrintValue(key, {&config, &module});
    const Place origin{FileOf(read, key.name)};
    if (text.empty() || origin.file.empty()) continue;
    table.entries.push_back(EntryAt(origin, std::string(key.name), text));
  }
  return table;
}

/// Returns whether the table states its kind and every key of the kind that has a value by default,
/// as a resolved file does.
static bool StatesAll(const TomlValue& table, std::span<const ModuleKind* const>::iterator kind) {
  if (kind == Kinds().end()) return false;
  return std::ranges::all_of(Keys(), [&](const KeySpec& key) {
    const bool of_kind = key.table == "modules.*" && key.kinds == Only(**kind);
    return !of_kind || PrintDefault(key).empty() || table.Find(key.name) != nullptr;
  });
}

std::vector<ReadFolder> CompleteFromFolders(TomlValue& tree, std::vector<ConfigError>& errors) {
  std::vector<ReadFolder> folders;
  TomlEntry* const modules = tree.Find("modules");
  if (modules == nullptr || !modules->value.Is(Kind::kTable)) return folders;
  const TomlEntry* const data = tree.Find("data");
  const bool fit_stated = data != nullptr && data->value.Find("image_fit") != nullptr;
  for (TomlEntry& module : modules->value.entries) {
    const TomlValue* const weights = FindString(module.value, "weights");
    if (weights == nullptr) continue;
    const std::string folder =
        HuggingFaceFolder(Located(ValueType::kWeights, weights->string, weights->place));
    const TomlValue* const word = FindString(module.value, "kind");
    const auto kind = word == nullptr ? Kinds().end()
                                      : std::ranges::find(Kinds(), word->string, &ModuleKind::word);
    // The reader reports a value of another form, and an unknown kind.
    if (folder.empty() || (word != nullptr && kind == Kinds().end())) continue;
    try {
      FolderModule read = ReadFolderModule(folder, word == nullptr ? nullptr : *kind);
      TomlValue table = TableOf(read);
      if (fit_stated) table.Erase("image_fit");  // SettleImages fills it
      Merge(table, std::move(module.value));
      module.value = std::move(table);
      folders.push_back({module.key, folder, std::move(read.defaulted), std::move(read.images)});
    } catch (const ModelFolderError& error) {
      if (StatesAll(module.value, kind)) continue;  // a resolved file, perhaps of a run elsewhere
      errors.push_back({weights->place, "modules." + module.key + ".weights: " + error.what()});
    }
  }
  return folders;
}

}  // namespace troupe
