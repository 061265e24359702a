// Completes modules and projectors that start from a folder with what its config.json says.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "configs/key_value.hpp"
#include "configs/paths.hpp"
#include "configs/steps.hpp"
#include "files/text_file.hpp"
#include "models/model_folder.hpp"

namespace troupe {

using Kind = TomlValue::Kind;

static const TomlValue* FindString(const TomlValue& table, std::string_view key) {
  const TomlEntry* const entry = table.Find(key);
  return entry != nullptr && entry->value.Is(Kind::kString) ? &entry->value : nullptr;
}

static std::string StringAt(const TomlValue& table, std::string_view key) {
  const TomlValue* const value = FindString(table, key);
  return value == nullptr ? "" : value->string;
}

/// Returns the folder that `weights` names, "" if it is of another form, which the reader reports.
static std::string FolderOf(const TomlValue& weights) {
  return HuggingFaceFolder(Located(ValueType::kWeights, weights.string, weights.place));
}

static bool HasTokenizer(const std::string& folder) {
  return WhyNotOpened(folder + "/tokenizer.json").empty() ||
         WhyNotOpened(folder + "/tokenizer.model").empty();
}

/// Returns `KEY = TEXT`, read at `place`.
static TomlEntry EntryAt(const Place& place, std::string_view key, const std::string& text) {
  const auto parsed = ParseToml(std::string(key) + " = " + text, place);
  TomlEntry entry = std::get<TomlValue>(parsed).entries.at(0);
  entry.place = place;
  entry.value.place = place;
  return entry;
}

static TomlValue TableAt(const Place& place) {
  TomlValue table;
  table.place = place;
  return table;
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
  TomlValue table = TableAt(place);
  table.entries.push_back(EntryAt(place, "kind", Quoted(read.model.kind().word)));
  for (const KeySpec& key : Keys()) {
    if (key.table != "modules.*" || key.kinds != Only(read.model.kind())) continue;
    const std::string text = PrintValue(key, {&config, &module});
    const Place origin{FileOf(read, key.name)};
    if (text.empty() || origin.file.empty()) continue;
    table.entries.push_back(EntryAt(origin, key.name, text));
  }
  return table;
}

/// The same of a projector.
static TomlValue TableOf(const FolderProjector& read) {
  const Place place{read.file};
  Config config;
  EdgeConfig edge;
  edge.through = ProjectorConfig{.kind = read.shape.kind, .hidden = read.shape.hidden};
  TomlValue table = TableAt(place);
  for (const std::string_view name : {"kind", "hidden"}) {
    const std::string text =
        PrintValue(*FindKey("edges.*.*.through", name), {&config, nullptr, &edge});
    table.entries.push_back(EntryAt(place, name, text));
  }
  return table;
}

/// Returns whether the table states its kind and every key of the kind that has a value by default,
/// as a resolved file does, also an older one.
static bool StatesAll(const TomlValue& table, std::span<const ModuleKind* const>::iterator kind) {
  if (kind == Kinds().end()) return false;
  return std::ranges::all_of(Keys(), [&](const KeySpec& key) {
    const bool of_kind = key.table == "modules.*" && key.kinds == Only(**kind);
    return !of_kind || key.added_later || PrintDefault(key).empty() ||
           table.Find(key.name) != nullptr;
  });
}

namespace {

class FolderReader {
 public:
  FolderReader(TomlValue& tree, std::vector<ConfigError>& errors) : tree_(tree), errors_(errors) {}

  std::vector<ReadFolder> Complete() && {
    SpreadWhole();
    for (TomlEntry* module : Modules()) CompleteModule(*module);
    for (TomlValue* edge : Edges()) CompleteProjector(*edge);
    return std::move(folders_);
  }

 private:
  std::vector<TomlEntry*> Modules() {
    std::vector<TomlEntry*> modules;
    TomlEntry* const all = tree_.Find("modules");
    if (all == nullptr || !all->value.Is(Kind::kTable)) return modules;
    for (TomlEntry& module : all->value.entries) {
      if (module.value.Is(Kind::kTable)) modules.push_back(&module);
    }
    return modules;
  }

  std::vector<TomlValue*> Edges() {
    std::vector<TomlValue*> edges;
    TomlEntry* const all = tree_.Find("edges");
    if (all == nullptr || !all->value.Is(Kind::kArray)) return edges;
    for (TomlValue& edge : all->value.items) {
      if (edge.Is(Kind::kTable) && !EdgeName(edge).empty()) edges.push_back(&edge);
    }
    return edges;
  }

  bool FitStated() const {
    const TomlEntry* const data = tree_.Find("data");
    return data != nullptr && data->value.Find("image_fit") != nullptr;
  }

  /// Removes from a folder's `table` what the fit that `module` or `data` states replaces.
  void DropReplacedFit(const TomlValue& module, TomlValue& table) const {
    const TomlEntry* const data = tree_.Find("data");
    const std::string own = StringAt(module, "image_fit");
    const std::string fit = own.empty() && data ? StringAt(data->value, "image_fit") : own;
    if (!fit.empty() && fit != "anyres") table.Erase("image_grids");
    if (FitStated()) table.Erase("image_fit");  // SettleImages fills it
  }

  bool FeedsAnother(const std::string& module) {
    return std::ranges::any_of(
        Edges(), [&](const TomlValue* edge) { return StringAt(*edge, "from") == module; });
  }

  /// Writes `model.from` as the weights of modules and projectors that state none.
  void SpreadWhole() {
    const TomlEntry* const table = tree_.Find("model");
    if (table == nullptr || !table->value.Is(Kind::kTable)) return;
    const TomlEntry* const from = table->value.Find("from");
    if (from == nullptr || !from->value.Is(Kind::kString) || FolderOf(from->value).empty()) return;
    const TomlEntry weights{"weights", from->place, from->value};
    SpreadTokenizer(weights);
    std::vector<std::string> filled;
    for (TomlEntry* module : Modules()) {
      if (StringAt(module->value, "kind") == "synthetic") continue;
      if (module->value.Find("weights") == nullptr) module->value.entries.push_back(weights);
      if (StringAt(module->value, "weights") == weights.value.string) filled.push_back(module->key);
    }
    const auto is_filled = [&](const std::string& module) {
      return std::ranges::find(filled, module) != filled.end();
    };
    for (TomlValue* edge : Edges()) {
      if (is_filled(StringAt(*edge, "from")) && is_filled(StringAt(*edge, "to"))) {
        SpreadToEdge(*edge, weights);
      }
    }
  }

  /// A folder without a tokenizer, such as one of a test, leaves the default.
  void SpreadTokenizer(const TomlEntry& weights) {
    TomlEntry* const data = tree_.Find("data");
    if (data == nullptr || !data->value.Is(Kind::kTable) || data->value.Find("tokenizer")) return;
    if (!HasTokenizer(FolderOf(weights.value))) return;
    data->value.entries.push_back({"tokenizer", weights.place, weights.value});
  }

  static void SpreadToEdge(TomlValue& edge, const TomlEntry& weights) {
    if (edge.Find("through") == nullptr) {
      edge.entries.push_back({"through", weights.place, TableAt(weights.place)});
    }
    TomlValue& through = edge.Find("through")->value;
    // A projector of a stated kind may be another one than the folder's.
    if (!through.Is(Kind::kTable) || through.Find("kind") != nullptr) return;
    if (through.Find("weights") == nullptr) through.entries.push_back(weights);
  }

  void CompleteModule(TomlEntry& module) {
    const TomlValue* const weights = FindString(module.value, "weights");
    if (weights == nullptr) return;
    const std::string folder = FolderOf(*weights);
    const TomlValue* const word = FindString(module.value, "kind");
    const auto kind = word == nullptr ? Kinds().end()
                                      : std::ranges::find(Kinds(), word->string, &ModuleKind::word);
    // The reader reports an unknown kind.
    if (folder.empty() || (word != nullptr && kind == Kinds().end())) return;
    try {
      FolderModule read =
          ReadFolderModule(folder, word == nullptr ? nullptr : *kind, FeedsAnother(module.key));
      TomlValue table = TableOf(read);
      DropReplacedFit(module.value, table);
      Merge(table, std::move(module.value));
      module.value = std::move(table);
      folders_.push_back({module.key, folder, std::move(read.defaulted), std::move(read.images)});
    } catch (const ModelFolderError& error) {
      if (StatesAll(module.value, kind)) return;  // a resolved file, perhaps of a run elsewhere
      errors_.push_back({weights->place, "modules." + module.key + ".weights: " + error.what()});
    }
  }

  void CompleteProjector(TomlValue& edge) {
    TomlEntry* const through = edge.Find("through");
    if (through == nullptr || !through->value.Is(Kind::kTable)) return;
    const TomlValue* const weights = FindString(through->value, "weights");
    if (weights == nullptr) return;
    const std::string folder = FolderOf(*weights);
    if (folder.empty()) return;
    try {
      FolderProjector read = ReadFolderProjector(folder);
      TomlValue table = TableOf(read);
      Merge(table, std::move(through->value));
      through->value = std::move(table);
      folders_.push_back(
          {"edges." + EdgeName(edge) + ".through", folder, std::move(read.defaulted), {}});
    } catch (const ModelFolderError& error) {
      if (through->value.Find("kind") != nullptr) return;  // stated: see CompleteModule
      errors_.push_back(
          {weights->place, "edges." + EdgeName(edge) + ".through.weights: " + error.what()});
    }
  }

  TomlValue& tree_;
  std::vector<ConfigError>& errors_;
  std::vector<ReadFolder> folders_;
};

}  // namespace

std::vector<ReadFolder> CompleteFromFolders(TomlValue& tree, std::vector<ConfigError>& errors) {
  return FolderReader(tree, errors).Complete();
}

}  // namespace troupe
