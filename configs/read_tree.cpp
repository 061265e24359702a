
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "configs/checks.hpp"
#include "configs/key_value.hpp"
#include "configs/steps.hpp"
#include "configs/suggest.hpp"

namespace troupe {

using Kind = TomlValue::Kind;

/// Returns the kinds that have this key, under our name or that of another program.
static KindSet KindsOf(const std::string& name) {
  KindSet kinds = KindsWithKey("modules.*", name);
  for (const MeantKey& meant : MeantBy(name)) {
    if (meant.table == "modules.*") kinds |= KindsWithKey("modules.*", meant.key);
  }
  return kinds;
}

/// Returns the kind that the table of a module names in other words or misspelt, else the first kind
/// that has all of its keys. Returns null if it has no such keys, or if both kinds that read a field
/// and others have them.
static const ModuleKind* LikelyKind(const TomlValue& module) {
  const TomlEntry* kind = module.Find("kind");
  if (kind != nullptr && kind->value.Is(TomlValue::Kind::kString)) {
    const std::string meant = MeantWord(*FindKey("modules.*", "kind"), kind->value.string).word;
    const auto found = std::ranges::find(Kinds(), meant, &ModuleKind::word);
    if (found != Kinds().end()) return *found;
  }
  KindSet possible = kEveryKind;
  for (const auto& entry : module.entries) {
    if (const KindSet kinds = KindsOf(entry.key); kinds != 0) possible &= kinds;
  }
  const ModuleKind* likely = nullptr;
  for (const ModuleKind* one : Kinds()) {
    if ((possible & Only(*one)) == 0) continue;
    if (likely == nullptr) likely = one;
    const bool alike = (one->make()->field() == nullptr) == (likely->make()->field() == nullptr);
    if (!alike) return nullptr;
  }
  return likely;
}

namespace {

/// A table being read: its path in the schema, its dotted name, and the structs it fills.
struct Scope {
  std::string path;    ///< "modules.*.layout"
  std::string dotted;  ///< "modules.vision.layout"
  Target target;
  KindSet kinds = kEveryKind;

  std::string Key(std::string_view name) const { return DottedKey(dotted, name); }
};

class TreeReader {
 public:
  TreeReader(Report& report, Origins& origins, ShapingInputs& inputs)
      : report_(report), origins_(origins), inputs_(inputs) {}

  Config Read(const TomlValue& tree) {
    ReadTable(tree, {"", "", {&config_, nullptr, nullptr, nullptr, &inputs_}});
    return std::move(config_);
  }

 private:
  bool ExpectKind(const TomlValue& value, Kind kind, const std::string& dotted, const char* what) {
    if (value.Is(kind)) return true;
    report_.AddAt(dotted, value.place,
                  std::string("expected ") + what + ", got " + Described(value));
    return false;
  }

  void ReadTable(const TomlValue& table, const Scope& scope) {
    for (const auto& entry : table.entries) ReadEntry(entry, scope);
    for (const auto& key : Keys()) {
      const bool wanted = key.table == scope.path && key.required && (key.kinds & scope.kinds) != 0;
      // If the kind is unknown, keys of every kind would be reported as missing.
      const bool of_kind = key.kinds == kEveryKind || scope.kinds != kEveryKind;
      if (wanted && of_kind && table.Find(key.name) == nullptr) {
        report_.Add(scope.Key(key.name), "missing, expected " + Expected(key));
      }
    }
  }

  void ReadEntry(const TomlEntry& entry, const Scope& scope) {
    if (scope.path.empty() && entry.key == "modules") return ReadModules(entry);
    if (scope.path.empty() && entry.key == "edges") return ReadEdges(entry);
    if (scope.path == "cluster" && entry.key == "nodes") return ReadNodes(entry, scope);
    if (scope.path == "data" && entry.key == "sources") return ReadSources(entry);
    if (const KeySpec* key = FindKey(scope.path, entry.key, scope.kinds)) {
      return ReadKey(entry, *key, scope);
    }
    // A quoted key could otherwise equal a path of the schema, such as "modules.*.layout".
    const bool plain = !entry.key.empty() && entry.key.find_first_of(".*") == std::string::npos;
    const TableSpec* table = plain ? FindTable(DottedKey(scope.path, entry.key)) : nullptr;
    if (table != nullptr && (table->kinds & scope.kinds) != 0) {
      return ReadSubTable(entry, *table, scope);
    }
    std::string& listed_at = listed_at_[{scope.path, scope.kinds}];
    const UnknownKey unknown = AnswerUnknown(entry, scope.path, scope.kinds, listed_at);
    if (unknown.lists_names) listed_at = scope.Key(entry.key);
    report_.AddAt(scope.Key(entry.key), entry.place, unknown.text);
  }

  void ReadKey(const TomlEntry& entry, const KeySpec& key, const Scope& scope) {
    const std::string dotted = scope.Key(entry.key);
    report_.Know(dotted, entry.value.place);
    NoteOrigin(dotted, entry.value);
    if (const auto refusal = ReadValue(key, entry.value, scope.target)) {
      report_.AddAt(dotted, refusal->place, refusal->text);
    }
  }

  void ReadSubTable(const TomlEntry& entry, const TableSpec& table, const Scope& scope) {
    const std::string dotted = scope.Key(entry.key);
    report_.Know(dotted, entry.place);
    table.create(scope.target);
    if (!ExpectKind(entry.value, Kind::kTable, dotted, "a table")) return;
    ReadTable(entry.value, {std::string(table.path), dotted, scope.target, scope.kinds});
  }

  void ReadNodes(const TomlEntry& nodes, const Scope& cluster) {
    const bool tables = nodes.value.Is(Kind::kArray) && !nodes.value.items.empty();
    if (!tables) return ReadKey(nodes, *FindKey("cluster", "nodes"), cluster);
    report_.Know("cluster.nodes", nodes.value.place);
    NoteOrigin("cluster.nodes", nodes.value);
    for (const auto& node : nodes.value.items) ReadNode(node);
  }

  void ReadNode(const TomlValue& value) {
    if (!ExpectKind(value, Kind::kTable, "cluster.nodes", "[[cluster.nodes]] tables")) return;
    const std::size_t index = config_.cluster.nodes.size();
    ClusterNode& node = config_.cluster.nodes.emplace_back();
    node.name = DefaultNodeName(index);
    const TomlEntry* name = value.Find("name");
    const bool named = name != nullptr && name->value.Is(Kind::kString);
    const std::string dotted = NodeKey(named ? name->value.string : node.name, index);
    report_.Know(dotted, value.place);
    ReadTable(value, {"cluster.nodes.*", dotted, {&config_, nullptr, nullptr, &node}});
  }

  void ReadSources(const TomlEntry& sources) {
    report_.Know("data.sources", sources.value.place);
    if (!ExpectKind(sources.value, Kind::kArray, "data.sources", "[[data.sources]] tables")) return;
    for (const auto& value : sources.value.items) {
      if (!ExpectKind(value, Kind::kTable, "data.sources", "[[data.sources]] tables")) continue;
      const std::string dotted = SourceKey(config_.data.sources.size());
      report_.Know(dotted, value.place);
      DataSource& source = config_.data.sources.emplace_back();
      ReadTable(value, {"data.sources.*", dotted, {.config = &config_, .source = &source}});
    }
  }

  void ReadModules(const TomlEntry& modules) {
    report_.Know("modules", modules.place);
    if (!ExpectKind(modules.value, Kind::kTable, "modules", "[modules.NAME] tables")) return;
    if (const std::size_t count = modules.value.entries.size(); count > kMaxModules) {
      return report_.AddAt("modules", modules.place,
                           "expected at most " + std::to_string(kMaxModules) + " modules, got " +
                               std::to_string(count));
    }
    for (const auto& entry : modules.value.entries) {
      if (!IsMisspelt(entry, modules.value)) ReadModule(entry);
    }
  }

  /// Reports a table whose name resembles that of a module, and which has no kind, ranks or weights.
  bool IsMisspelt(const TomlEntry& module, const TomlValue& modules) {
    for (const char* key : {"kind", "ranks", "inline_in", "weights"}) {
      if (module.value.Find(key) != nullptr) return false;
    }
    std::vector<std::string> names;
    for (const auto& entry : modules.entries) {
      if (entry.value.Find("kind") != nullptr) names.push_back(entry.key);
    }
    const std::string meant = Nearest(module.key, names);
    if (meant.empty()) return false;
    report_.AddAt("modules." + module.key, module.place,
                  "no such module; did you mean " + Quoted(meant) + "?");
    return true;
  }

  /// Names become parts of parameter names, dotted keys and file names.
  bool CheckName(const TomlEntry& module) {
    const std::string& name = module.key;
    if (name.empty() || !IsMadeOfLetters(name, "_-")) {
      report_.AddAt("modules", module.place,
                    "expected a name of letters, digits, _ and -, got " + Quoted(name));
    } else if (("_" + name + "_").find("_to_") != std::string::npos) {  // a, to_b and a_to, b too
      report_.AddAt(
          "modules", module.place,
          "expected a name without \"_to_\", which names projectors, got " + Quoted(name));
    }
    return report_.Good({"modules"});
  }

  /// Reads the kind before the other keys, since it decides which keys a module has. Reports a kind
  /// that is missing or wrong, and then reads the module as the kind it resembles most.
  KindSet ReadKind(const TomlEntry& entry, ModuleConfig& module) {
    const TomlEntry* kind = entry.value.Find("kind");
    const KeySpec& key = *FindKey("modules.*", "kind");
    const Target target{&config_, &module, nullptr};
    if (kind != nullptr && !ReadValue(key, kind->value, target)) return Only(module.model.kind());
    const ModuleKind* const likely = LikelyKind(entry.value);
    if (likely == nullptr) return kEveryKind;
    module.model = likely->make();
    report_.TakeAsRead("modules." + entry.key + ".kind");
    return Only(*likely);
  }

  void NoteOrigin(const std::string& dotted, const TomlValue& value) {
    origins_[dotted] = {value.place, ToToml(value), ToToml(value), value.replaced};
  }

  void ReadModule(const TomlEntry& entry) {
    if (!CheckName(entry)) return;
    const std::string dotted = "modules." + entry.key;
    report_.Know(dotted, entry.place);
    if (!ExpectKind(entry.value, Kind::kTable, dotted, "a table")) return;
    ModuleConfig& module = config_.modules.emplace_back();
    module.name = entry.key;
    const KindSet kinds = ReadKind(entry, module);
    ReadTable(entry.value, {"modules.*", dotted, {&config_, &module, nullptr}, kinds});
  }

  void ReadEdges(const TomlEntry& edges) {
    report_.Know("edges", edges.place);
    if (!ExpectKind(edges.value, Kind::kArray, "edges", "[[edges]] tables")) return;
    for (const auto& edge : edges.value.items) ReadEdge(edge);
  }

  void ReadEdge(const TomlValue& value) {
    if (!ExpectKind(value, Kind::kTable, "edges", "[[edges]] tables")) return;
    const std::string name = EdgeName(value);
    const std::string dotted = name.empty() ? "edges" : "edges." + name;
    report_.Know(dotted, value.place);
    EdgeConfig edge;
    ReadTable(value, {"edges.*.*", dotted, {&config_, nullptr, &edge}});
    if (!name.empty()) config_.edges.push_back(std::move(edge));
  }

  Report& report_;
  Origins& origins_;
  ShapingInputs& inputs_;
  Config config_;
  /// By table and module kind: the unknown key whose error already lists all legal names.
  std::map<std::pair<std::string, KindSet>, std::string> listed_at_;
};

}  // namespace

Config ReadTree(const TomlValue& tree, Report& report, Origins& origins, ShapingInputs& inputs) {
  return TreeReader(report, origins, inputs).Read(tree);
}

}  // namespace troupe
