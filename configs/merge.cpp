#include "configs/merge.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "configs/schema.hpp"

namespace troupe {

using Kind = TomlValue::Kind;

std::string EdgeName(const TomlValue& edge) {
  const TomlEntry* from = edge.Find("from");
  const TomlEntry* to = edge.Find("to");
  const bool named = from != nullptr && to != nullptr && from->value.Is(Kind::kString) &&
                     to->value.Is(Kind::kString);
  return named ? from->value.string + "." + to->value.string : std::string();
}

std::vector<ConfigError> RepeatedEdges(const TomlValue& file) {
  std::vector<ConfigError> errors;
  const TomlEntry* edges = file.Find("edges");
  if (edges == nullptr) return errors;
  std::set<std::string> seen;
  for (const auto& edge : edges->value.items) {
    const std::string name = EdgeName(edge);
    if (name.empty() || seen.insert(name).second) continue;
    errors.push_back({edge.place.file, edge.place.line, edge.place.column,
                      "edges." + name + ": written twice, expected one [[edges]] for each pair"});
  }
  return errors;
}

static bool IsPlacement(const std::string& key) {
  const KeySpec* spec = FindKey("modules.*", key);
  const TableSpec* table = FindTable("modules.*." + key);
  return (spec != nullptr && spec->placement) || (table != nullptr && table->placement);
}

/// A module has inline_in or its own ranks. If `over` has one, clears the other from `base`.
static void ClearOtherPlacement(TomlValue& base, const TomlValue& over) {
  const auto placed = [](const TomlEntry& entry) { return IsPlacement(entry.key); };
  const bool over_is_placed = std::ranges::any_of(over.entries, placed);
  if (over.Find("inline_in") != nullptr) {
    std::erase_if(base.entries, placed);
  } else if (over_is_placed) {
    base.Erase("inline_in");
  }
}

/// The size of a step has two forms. If `over` has one, clears the other from `base`.
static void ClearOtherBatch(TomlValue& base, const TomlValue& over) {
  constexpr std::string_view kWays[2] = {"microbatches", "global_batch"};
  for (const int way : {0, 1}) {
    if (over.Find(kWays[way]) != nullptr && over.Find(kWays[1 - way]) == nullptr) {
      base.Erase(kWays[1 - way]);
    }
  }
}

static void MergeTable(TomlValue& base, TomlValue over, const std::string& path);

static void MergeEdges(TomlValue& base, TomlValue over) {
  for (auto& edge : over.items) {
    const std::string name = EdgeName(edge);
    const auto same = std::ranges::find(base.items, name, EdgeName);
    if (name.empty() || same == base.items.end()) {
      base.items.push_back(std::move(edge));
    } else {
      MergeTable(*same, std::move(edge), "edges.*.*");
    }
  }
}

static void Replace(TomlEntry& old, TomlEntry entry) {
  entry.value.replaced = std::move(old.value.replaced);
  entry.value.replaced.push_back({old.value.place, ToToml(old.value)});
  old = std::move(entry);
}

static void MergeEntry(TomlValue& base, TomlEntry entry, const std::string& path) {
  TomlEntry* old = base.Find(entry.key);
  if (old == nullptr) {
    base.entries.push_back(std::move(entry));
  } else if (old->value.Is(Kind::kTable) && entry.value.Is(Kind::kTable)) {
    const std::string name = path == "modules" ? "*" : entry.key;
    if (entry.value.is_inline) old->place = entry.place;
    MergeTable(old->value, std::move(entry.value), path.empty() ? name : path + "." + name);
  } else if (path.empty() && entry.key == "edges" && old->value.Is(Kind::kArray) &&
             entry.value.Is(Kind::kArray)) {
    MergeEdges(old->value, std::move(entry.value));
  } else {
    Replace(*old, std::move(entry));
  }
}

static void MergeTable(TomlValue& base, TomlValue over, const std::string& path) {
  if (path == "modules.*") ClearOtherPlacement(base, over);
  if (path == "schedule") ClearOtherBatch(base, over);
  if (path == "modules.*.layout" && over.is_inline) {
    std::erase_if(base.entries, [&](const auto& old) { return over.Find(old.key) == nullptr; });
  }
  for (auto& entry : over.entries) MergeEntry(base, std::move(entry), path);
}

void Merge(TomlValue& base, TomlValue over) { MergeTable(base, std::move(over), ""); }

}  // namespace troupe
