#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "configs/key_value.hpp"
#include "configs/steps.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"

namespace troupe {

namespace fs = std::filesystem;
using Kind = TomlValue::Kind;

static constexpr std::size_t kMaxDepth = 8;
/// A configuration is about a page; a larger file is probably not one.
static constexpr std::size_t kMaxFileBytes = 1U << 20U;

namespace {

/// A file being read: its path as the user sees it, and its canonical form.
struct OpenFile {
  std::string path;
  fs::path canonical;
};

}  // namespace

std::string EdgeName(const TomlValue& edge) {
  const TomlEntry* from = edge.Find("from");
  const TomlEntry* to = edge.Find("to");
  const bool named = from != nullptr && to != nullptr && from->value.Is(Kind::kString) &&
                     to->value.Is(Kind::kString);
  return named ? from->value.string + "." + to->value.string : std::string();
}

static bool IsPlacement(const std::string& key) {
  const KeySpec* spec = FindKey("modules.*", key);
  const TableSpec* table = FindTable("modules.*." + key);
  return (spec != nullptr && spec->placement) || (table != nullptr && table->placement);
}

/// A module has inline_in or its own ranks. If `over` has one, clears the other from `base`.
static void ClearOtherPlacement(TomlValue& base, const TomlValue& over) {
  if (over.Find("inline_in") != nullptr) {
    std::erase_if(base.entries, [](const TomlEntry& entry) { return IsPlacement(entry.key); });
  } else if (over.Find("ranks") != nullptr) {
    base.Erase("inline_in");
  }
}

/// Two keys of a table that state the same in different forms.
struct TwoForms {
  std::string_view table;
  std::string_view keys[2];
};

static constexpr TwoForms kTwoForms[] = {{"schedule", {"microbatches", "global_batch"}},
                                         {"run", {"steps", "epochs"}},
                                         {"optimizer", {"warmup_steps", "warmup_ratio"}}};

/// If `over` has one form, clears the other from `base`.
static void ClearOtherForm(TomlValue& base, const TomlValue& over, const TwoForms& forms) {
  for (const int form : {0, 1}) {
    const std::string_view other = forms.keys[1 - form];
    if (over.Find(forms.keys[form]) != nullptr && over.Find(other) == nullptr) base.Erase(other);
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
  for (const TwoForms& forms : kTwoForms) {
    if (path == forms.table) ClearOtherForm(base, over, forms);
  }
  if (path == "modules.*.layout" && over.is_inline) {
    std::erase_if(base.entries, [&](const auto& old) { return over.Find(old.key) == nullptr; });
  }
  for (auto& entry : over.entries) MergeEntry(base, std::move(entry), path);
}

void Merge(TomlValue& base, TomlValue over) { MergeTable(base, std::move(over), ""); }

static std::string CycleText(const std::vector<OpenFile>& chain, std::size_t first) {
  const auto cycle = std::span(chain).subspan(first);
  return "extends: cycle " + Listed(cycle, " -> ", std::mem_fn(&OpenFile::path)) + " -> " +
         cycle.front().path;
}

static TomlValue ReadChain(const std::string& path, const Place& asked,
                           std::vector<OpenFile>& chain, std::vector<ConfigError>& errors);

static TomlValue ReadBases(const TomlValue& file, std::vector<OpenFile>& chain,
                           std::vector<ConfigError>& errors) {
  TomlValue merged;
  merged.place = file.place;
  const TomlEntry* extends = file.Find("extends");
  if (extends == nullptr) return merged;
  if (!extends->value.Is(TomlValue::Kind::kArray)) {
    errors.push_back({extends->value.place,
                      "extends: expected a list of files, got " + Described(extends->value)});
    return merged;
  }
  for (const auto& item : extends->value.items) {
    if (!item.Is(TomlValue::Kind::kString) || item.string.empty()) {
      errors.push_back({item.place, "extends: expected a file, got " + Described(item)});
      continue;
    }
    const fs::path base = fs::path(file.place.file).parent_path() / item.string;
    Merge(merged, ReadChain(base.lexically_normal().string(), item.place, chain, errors));
  }
  return merged;
}

/// Refuses another version of the format in every file, even if an extending file replaces the key.
static void CheckSchema(const TomlValue& file, std::vector<ConfigError>& errors) {
  const TomlEntry* schema = file.Find("schema");
  if (schema == nullptr) return;
  if (const auto refusal = ReadValue(*FindKey("", "schema"), schema->value, {})) {
    errors.push_back({refusal->place, "schema: " + refusal->text});
  }
}

/// Refuses edges that one file has twice, which merging would hide.
static void CheckEdgesOnce(const TomlValue& file, std::vector<ConfigError>& errors) {
  const TomlEntry* edges = file.Find("edges");
  if (edges == nullptr) return;
  std::set<std::string> seen;
  for (const auto& edge : edges->value.items) {
    const std::string name = EdgeName(edge);
    if (name.empty() || seen.insert(name).second) continue;
    errors.push_back(
        {edge.place, "edges." + name + ": written twice, expected one [[edges]] for each pair"});
  }
}

static TomlValue ParseFile(const std::string& path, const Place& asked,
                           std::vector<ConfigError>& errors) {
  TextFile content = ReadTextFile(path, kMaxFileBytes, "expected at most 1 MiB of TOML, got more");
  if (!content.failure.empty()) {
    const std::string subject = asked.line == 0 ? "" : "extends: " + Quoted(path) + ": ";
    errors.push_back({asked, subject + content.failure});
    return {};
  }
  auto parsed = ParseToml(content.text, {path});
  if (auto* error = std::get_if<ConfigError>(&parsed)) {
    errors.push_back(std::move(*error));
    return {};
  }
  return std::get<TomlValue>(std::move(parsed));
}

static TomlValue ReadChain(const std::string& path, const Place& asked,
                           std::vector<OpenFile>& chain, std::vector<ConfigError>& errors) {
  std::error_code code;
  const fs::path canonical = fs::weakly_canonical(path, code);
  const auto open = std::ranges::find(chain, canonical, &OpenFile::canonical);
  if (open != chain.end()) {
    errors.push_back({asked, CycleText(chain, static_cast<std::size_t>(open - chain.begin()))});
    return {};
  }
  if (chain.size() > kMaxDepth) {
    errors.push_back({asked, "extends: expected at most 8 files one above the other, got more"});
    return {};
  }
  TomlValue file = ParseFile(path, asked, errors);
  if (file.place.file.empty()) return {};
  CheckSchema(file, errors);
  CheckEdgesOnce(file, errors);
  chain.push_back({path, canonical});
  TomlValue merged = ReadBases(file, chain, errors);
  chain.pop_back();
  file.Erase("extends");
  Merge(merged, std::move(file));
  return merged;
}

TomlValue ReadFiles(const std::string& path, std::vector<ConfigError>& errors) {
  std::vector<OpenFile> chain;
  return ReadChain(path, {path}, chain, errors);
}

}  // namespace troupe
