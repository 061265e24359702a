#include "configs/resolved.hpp"

#include "configs/checks.hpp"
#include "configs/key_value.hpp"
#include "configs/loader.hpp"
#include "configs/nodes.hpp"

namespace troupe {

static ResolvedTable Resolve(const TableSpec& spec, const std::string& dotted,
                             const Target& target) {
  ResolvedTable table{&spec, dotted, {}};
  const ModuleConfig* module = target.module;
  const KindSet kinds = module == nullptr ? kEveryKind : Only(module->model.kind());
  const bool is_inline = module != nullptr && module->inline_in;
  for (const auto& key : Keys()) {
    if (key.table != spec.path || (key.kinds & kinds) == 0 || (key.placement && is_inline))
      continue;
    std::string value = PrintValue(key, target);
    if (!value.empty()) table.keys.push_back({std::string(key.name), std::move(value), &key});
  }
  return table;
}

/// Adds the table at `prefix` of the schema and its sub-tables, for one module or edge.
static void ResolveGroup(std::string_view prefix, const std::string& dotted, const Target& target,
                         std::vector<ResolvedTable>& tables) {
  const KindSet kinds = target.module == nullptr ? kEveryKind : Only(target.module->model.kind());
  for (const auto& spec : Tables()) {
    const bool own = spec.path == prefix;
    const bool inside = ParentOf(spec.path) == prefix;
    if ((!own && !inside) || (spec.kinds & kinds) == 0 || !spec.present(target)) continue;
    const std::string name = own ? dotted : dotted + "." + std::string(LastOf(spec.path));
    tables.push_back(Resolve(spec, name, target));
  }
}

std::vector<ResolvedTable> ResolvedTables(const Config& config) {
  Config copy = config;  // slots are writable; reading needs no second set of them
  std::vector<ResolvedTable> tables;
  for (const auto& spec : Tables()) {
    if (spec.path == "modules.*") {
      for (auto& module : copy.modules) {
        ResolveGroup(spec.path, "modules." + module.name, {&copy, &module, nullptr}, tables);
      }
    } else if (spec.path == "edges.*.*") {
      for (auto& edge : copy.edges) {
        ResolveGroup(spec.path, KeyOf(edge), {&copy, nullptr, &edge}, tables);
      }
    } else if (spec.path == "cluster.nodes.*") {
      if (AreAlike(copy.cluster.nodes)) continue;  // cluster.nodes holds the count
      for (std::size_t i = 0; i < copy.cluster.nodes.size(); ++i) {
        ClusterNode& node = copy.cluster.nodes[i];
        tables.push_back(Resolve(spec, NodeKey(node.name, i), {&copy, nullptr, nullptr, &node}));
      }
    } else if (spec.path.find('*') == std::string_view::npos) {
      tables.push_back(Resolve(spec, std::string(spec.path), {&copy, nullptr, nullptr}));
    }
  }
  return tables;
}

static std::string Header(const ResolvedTable& table) {
  if (table.dotted.empty()) return {};
  if (table.spec->path == "edges.*.*") return "\n[[edges]]\n";
  if (table.spec->path == "cluster.nodes.*") return "\n[[cluster.nodes]]\n";
  return "\n[" + table.dotted + "]\n";
}

/// Writes a table inside a module or an edge on one line: `layout = { tp = 2, pp = 2 }`.
static std::string InlineTable(const ResolvedTable& table) {
  std::string text;
  for (const auto& key : table.keys) {
    text += text.empty() ? " " : ", ";
    text += key.name + " = " + key.value;
  }
  return std::string(LastOf(table.spec->path)) + " = {" + text + " }\n";
}

std::string ResolvedToml(const Config& config) {
  std::string text;
  for (const auto& table : ResolvedTables(config)) {
    const std::string_view parent = ParentOf(table.spec->path);
    if (parent == "modules.*" || parent == "edges.*.*") {
      text += InlineTable(table);
      continue;
    }
    text += Header(table);
    for (const auto& key : table.keys) text += key.name + " = " + key.value + "\n";
  }
  return text;
}

}  // namespace troupe
