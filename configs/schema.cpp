#include "configs/schema.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "configs/schema_keys.hpp"

namespace troupe {

void Add(std::vector<KeySpec>& keys, const Shared& shared,
         std::initializer_list<KeyEntry> entries) {
  for (const KeySpec& entry : entries) {
    KeySpec& key = keys.emplace_back(entry);
    key.table = shared.table;
    key.kinds &= shared.kinds;
    if (key.role == KeyRole::kRun) key.role = shared.role;
  }
}

static std::vector<KeySpec> KindKeys() {
  std::vector<KeySpec> keys;
  for (const ModuleKind* kind : Kinds()) {
    for (const ModelKey& own : kind->keys()) {
      KeySpec& key = keys.emplace_back();
      static_cast<KeyText&>(key) = own;  // NOLINT(cppcoreguidelines-slicing)
      key.table = "modules.*";
      key.kinds = Only(*kind);
      key.slot = [slot = own.slot](const Target& target) {
        return std::visit([](auto&& field) -> Slot { return field; }, slot(*target.module->model));
      };
    }
  }
  return keys;
}

static bool StatesOverride(const Target& target) {
  return OverrideIn(target) != OptimizerOverride{};
}

std::span<const TableSpec> Tables() {
  static const auto kTables = std::to_array<TableSpec>({
      {"", "top level", "The file itself."},
      {"run", "[run]", "What the run is called and how long it lasts."},
      {"cluster", "[cluster]", "The devices of the job."},
      {"cluster.nodes.*", "[[cluster.nodes]]",
       "The machines of the job, where they are not all alike; in place of the count `nodes`. "
       "Files that extend each other replace the list as a whole."},
      {"cluster.topology", "[cluster.topology]",
       "What the links between devices carry, for `troupe plan`. What is not stated is as the "
       "device of --device has it.",
       kEveryKind, false,
       [](const Target& t) { return t.config->cluster.topology != TopologyConfig{}; }},
      {"transport", "[transport]", "How tensors travel between processes."},
      {"model", "[model]",
       "A whole model to start from: `weights` of every module and projector that states none.",
       kEveryKind, false, [](const Target& t) { return t.config->model.from.has_value(); }},
      {"modules.*", "[modules.NAME]", "A part of the model, with its own layout on its own ranks."},
      {"modules.*.layout", "[modules.NAME.layout]",
       "How the module is cut. `layout = { ... }` replaces an inherited layout as a whole, since "
       "what is not said is 1; `layout.tp = 2` changes one size.",
       kEveryKind, true, [](const Target& t) { return !t.module->inline_in; }},
      {"modules.*.input", "[modules.NAME.input]",
       "What an encoder reads of a sample. Required for each encoder where there are several.",
       KindsWhere([](const ModelConfig& model) { return model.field() || !model.computes(); }),
       false, [](const Target& t) { return t.module->input.has_value(); },
       [](const Target& t) { t.module->input.emplace(); }},
      {"modules.*.lora", "lora of [modules.NAME]",
       "Trains adapters of low rank beside its linear layers, and nothing else of it (LoRA).",
       KindsWhere([](const ModelConfig& model) { return model.split_layers().has_value(); }), false,
       [](const Target& t) { return t.module->lora.has_value(); },
       [](const Target& t) { t.module->lora.emplace(); }},
      {"modules.*.moe", "[modules.NAME.moe]",
       "The auxiliary losses of a language model with experts.",
       KindsWhere([](const ModelConfig& model) { return model.may_have_experts(); }), false,
       [](const Target& t) { return t.module->model->num_experts() > 0; }},
      {"modules.*.optimizer", "[modules.NAME.optimizer]",
       "The module's own values over `[optimizer]`.", kEveryKind, false, StatesOverride},
      {"edges.*.*", "[[edges]]",
       "Rows of one module flow into another. Files that extend each other merge edges by `from` "
       "and `to`; in `--set` and `--explain` an edge is `edges.FROM.TO`."},
      {"edges.*.*.through", "through of [[edges]]",
       "The projector on the edge. Without one the hidden sizes must be equal.", kEveryKind, false,
       [](const Target& t) { return t.edge->through.has_value(); },
       [](const Target& t) { t.edge->through.emplace(); }},
      {"edges.*.*.through.optimizer", "through.optimizer of [[edges]]",
       "The projector's own values over those of the module on whose ranks it runs.", kEveryKind,
       false, [](const Target& t) { return t.edge->through && StatesOverride(t); }},
      {"schedule", "[schedule]",
       "How a step is cut into microbatches and in which order they run."},
      {"optimizer", "[optimizer]", "How parameters are updated."},
      {"data", "[data]", "The samples. Needed unless all modules are \"synthetic\"."},
      {"data.sources.*", "[[data.sources]]",
       "Parts of the training samples, in place of `data.train` (docs/data.md). Files that extend "
       "each other "
       "replace the list as a whole; in `--explain` the first is `data.sources.0`."},
      {"trace", "[trace]", "What is recorded during the run."},
      {"checkpoint", "[checkpoint]", "What is kept of a run, to resume from."},
      {"log", "[log]", "What is written about a run next to metrics.jsonl."},
  });
  return kTables;
}

static std::vector<KeySpec> AllKeys() {
  std::vector<KeySpec> keys = RunKeys();
  for (const auto part : {ClusterKeys, ModuleKeys, KindKeys, EdgeKeys}) {
    std::ranges::move(part(), std::back_inserter(keys));
  }
  return keys;
}

std::span<const KeySpec> Keys() {
  static const std::vector<KeySpec> kKeys = AllKeys();
  return kKeys;
}

KindSet Only(const ModuleKind& kind) {
  const auto kinds = Kinds();
  return KindSet{1} << (std::ranges::find(kinds, &kind) - kinds.begin());
}

KindSet KindsWhere(bool (*accept)(const ModelConfig&)) {
  KindSet set = 0;
  for (const ModuleKind* kind : Kinds()) {
    if (accept(*kind->make())) set |= Only(*kind);
  }
  return set;
}

const TableSpec* FindTable(std::string_view path) {
  const auto tables = Tables();
  const auto found = std::ranges::find(tables, path, &TableSpec::path);
  return found == tables.end() ? nullptr : &*found;
}

const KeySpec* FindKey(std::string_view table, std::string_view name, KindSet kinds) {
  const auto keys = Keys();
  const auto found = std::ranges::find_if(keys, [&](const KeySpec& key) {
    return key.table == table && key.name == name && (key.kinds & kinds) != 0;
  });
  return found == keys.end() ? nullptr : &*found;
}

KindSet KindsWithKey(std::string_view table, std::string_view name) {
  KindSet kinds = 0;
  for (const auto& key : Keys()) {
    if (key.table == table && key.name == name) kinds |= key.kinds;
  }
  return kinds;
}

std::string_view LastOf(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string_view ParentOf(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string DottedKey(const std::string& table, std::string_view key) {
  return (table.empty() ? "" : table + ".") + std::string(key);
}

std::vector<std::string> NamesIn(std::string_view table, KindSet kinds) {
  std::vector<std::string> names;
  for (const auto& key : Keys()) {
    if (key.table == table && (key.kinds & kinds) != 0) names.emplace_back(key.name);
  }
  for (const auto& sub : Tables()) {
    // At the top the first parts are the names: the schema has no table "modules".
    const std::string_view name =
        table.empty() ? sub.path.substr(0, sub.path.find('.')) : LastOf(sub.path);
    const bool direct = table.empty() ? !name.empty() : ParentOf(sub.path) == table;
    const bool known = std::ranges::find(names, name) != names.end();
    if (direct && !known && (sub.kinds & kinds) != 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace troupe
