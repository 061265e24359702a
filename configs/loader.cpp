#include "configs/loader.hpp"

#include <utility>

#include "configs/checks.hpp"
#include "configs/key_value.hpp"
#include "configs/schema.hpp"
#include "configs/steps.hpp"
#include "layout/text.hpp"

namespace troupe {

/// Returns the origins of all values, defaults included.
static Origins CompleteOrigins(const Config& config, Origins written) {
  for (const auto& table : ResolvedTables(config)) {
    for (const auto& key : table.keys) written[key.dotted].value = key.value;
  }
  return written;
}

static void ThrowIfAny(const std::vector<ConfigError>& errors) {
  if (!errors.empty()) throw ConfigErrors(errors);
}

LoadedConfig LoadConfig(const std::string& path, const std::vector<std::string>& overrides) {
  std::vector<ConfigError> errors;
  TomlValue tree = ReadFiles(path, errors);
  for (const auto& text : overrides) Merge(tree, ReadOverride(text, errors));
  ThrowIfAny(errors);
  LoadedConfig loaded;
  loaded.folders = CompleteFromFolders(tree, errors);
  ThrowIfAny(errors);

  Report report(path);
  ShapingInputs inputs;
  loaded.config = ReadTree(tree, report, loaded.origins, inputs);
  FillNodes(loaded.config.cluster);
  FillDefaults(loaded.config, report);
  SettleImages(loaded.config, inputs, report);
  SetChunks(loaded.config);
  JoinRows(loaded.config);
  SettleBatch(loaded.config, inputs, report);
  if (loaded.config.run.epochs) loaded.config.run.steps = 0;
  ReadScheduleFile(loaded.config.schedule, report);
  CheckConfig(loaded.config, report);
  ThrowIfAny(report.errors());
  loaded.origins = CompleteOrigins(loaded.config, std::move(loaded.origins));
  loaded.resolved_toml = ResolvedToml(loaded.config);
  loaded.remarks = Remarks(loaded.config, loaded.origins);
  return loaded;
}

static KindSet KindsOf(const Target& target) {
  return target.module == nullptr ? kEveryKind : Only(target.module->model.kind());
}

static ResolvedTable Resolve(const TableSpec& spec, const std::string& dotted,
                             const Target& target) {
  ResolvedTable table{&spec, dotted, {}};
  const KindSet kinds = KindsOf(target);
  const bool is_inline = target.module != nullptr && target.module->inline_in;
  for (const auto& key : Keys()) {
    if (key.table != spec.path || (key.kinds & kinds) == 0 || (key.placement && is_inline))
      continue;
    std::string value = PrintValue(key, target);
    if (!value.empty()) table.keys.push_back({DottedKey(dotted, key.name), std::move(value), &key});
  }
  return table;
}

std::vector<TableInstance> InstancesOf(Config& config, std::string_view path) {
  std::vector<TableInstance> instances;
  const auto rest = [&](std::string_view group) { return std::string(path.substr(group.size())); };
  if (path.starts_with("modules.*")) {
    for (auto& module : config.modules) {
      instances.push_back({"modules." + module.name + rest("modules.*"), {&config, &module}});
    }
  } else if (path.starts_with("edges.*.*")) {
    for (auto& edge : config.edges) {
      instances.push_back({KeyOf(edge) + rest("edges.*.*"), {&config, nullptr, &edge}});
    }
  } else if (path == "cluster.nodes.*") {
    auto& nodes = config.cluster.nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      instances.push_back({NodeKey(nodes[i].name, i), {&config, nullptr, nullptr, &nodes[i]}});
    }
  } else if (path == "data.sources.*") {
    for (std::size_t i = 0; i < config.data.sources.size(); ++i) {
      instances.push_back({SourceKey(i), {.config = &config, .source = &config.data.sources[i]}});
    }
  } else {
    instances.push_back({std::string(path), {&config}});
  }
  return instances;
}

/// Returns whether the table is written after the one that it is part of, for each module or edge.
static bool IsPart(const TableSpec& spec) {
  const std::string_view whole = ParentOf(spec.path);
  return !whole.empty() && FindTable(whole) != nullptr;
}

/// Adds a table, then the tables inside it, each with its own.
static void AddWithParts(const TableSpec& spec, const std::string& dotted, const Target& target,
                         std::vector<ResolvedTable>& tables) {
  if ((spec.kinds & KindsOf(target)) == 0 || !spec.present(target)) return;
  tables.push_back(Resolve(spec, dotted, target));
  for (const auto& part : Tables()) {
    if (!IsPart(part) || ParentOf(part.path) != spec.path) continue;
    AddWithParts(part, dotted + "." + std::string(LastOf(part.path)), target, tables);
  }
}

std::vector<ResolvedTable> ResolvedTables(const Config& config) {
  Config copy = config;  // slots are writable; reading needs no second set of them
  std::vector<ResolvedTable> tables;
  for (const auto& spec : Tables()) {
    // cluster.nodes holds the count of nodes that are alike
    if (IsPart(spec) || (spec.path == "cluster.nodes.*" && AreAlike(copy.cluster.nodes))) continue;
    for (const auto& [dotted, target] : InstancesOf(copy, spec.path)) {
      AddWithParts(spec, dotted, target, tables);
    }
  }
  return tables;
}

static std::string KeyLine(const ResolvedKey& key) {
  return std::string(key.spec->name) + " = " + key.value;
}

static std::string Header(const ResolvedTable& table) {
  if (table.dotted.empty()) return {};
  if (table.spec->path == "edges.*.*") return "\n[[edges]]\n";
  if (table.spec->path == "data.sources.*") return "\n[[data.sources]]\n";
  if (table.spec->path == "cluster.nodes.*") return "\n[[cluster.nodes]]\n";
  return "\n[" + table.dotted + "]\n";
}

/// Returns a table inside a module or an edge, with the tables inside it, on one line: `layout = {
/// tp = 2, pp = 2 }`. Moves `table` past them.
static std::string InlineTable(std::vector<ResolvedTable>::const_iterator& table,
                               std::vector<ResolvedTable>::const_iterator end) {
  const ResolvedTable& whole = *table++;
  std::vector<std::string> entries;
  for (const ResolvedKey& key : whole.keys) entries.push_back(KeyLine(key));
  while (table != end && ParentOf(table->dotted) == whole.dotted) {
    entries.push_back(InlineTable(table, end));
  }
  return std::string(LastOf(whole.spec->path)) + " = { " + Listed(entries) + " }";
}

std::string ResolvedToml(const Config& config) {
  std::string text;
  const std::vector<ResolvedTable> tables = ResolvedTables(config);
  for (auto table = tables.begin(); table != tables.end();) {
    if (IsPart(*table->spec)) {
      text += InlineTable(table, tables.end()) + "\n";
      continue;
    }
    text += Header(*table);
    for (const auto& key : table->keys) text += KeyLine(key) + "\n";
    ++table;
  }
  return text;
}

}  // namespace troupe
