#include "configs/schema.hpp"

#include <algorithm>
#include <iterator>

#include "configs/schema_keys.hpp"
#include "configs/spelling.hpp"
#include "configs/toml_value.hpp"

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

std::string_view LastOf(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string_view ParentOf(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
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

/// Prints a bound, which is whole or short: 0, 1, 65536, 0.5.
static std::string BoundText(double bound) {
  const auto whole = static_cast<std::int64_t>(bound);
  return static_cast<double>(whole) == bound ? std::to_string(whole) : NumberText(bound);
}

static std::string ExpectedNumber(const KeySpec& key) {
  const bool whole = key.type == ValueType::kInteger;
  const Range& range = key.range;
  std::string text = whole ? "a whole number" : "a number";
  if (!key.unit.empty()) text += " (" + std::string(key.unit) + ")";
  if (range.low == range.high) return BoundText(range.low);
  const bool low = range.low > -kMaxCount;
  const bool high = range.high < kMaxCount;
  if (low) text += (range.above_low ? " above " : " of at least ") + BoundText(range.low);
  if (low && high) text += " and";
  if (high) text += (range.below_high ? " below " : " at most ") + BoundText(range.high);
  return text;
}

std::string Expected(const KeySpec& key) {
  switch (key.type) {
    case ValueType::kInteger:
    case ValueType::kNumber:
      return ExpectedNumber(key);
    case ValueType::kBoolean:
      return "true or false";
    case ValueType::kText:
      return "a string";
    case ValueType::kPath:
      return "a file";
    case ValueType::kTokenizer:
      return "\"bytes\" or \"sentencepiece:FILE\"";
    case ValueType::kWord:
      return Alternatives(key.words);
    case ValueType::kRanks:
      return "ranks like \"4-7\", \"0-2,5\" or [0, 1, 2, 5]";
    case ValueType::kStages:
      return "\"balanced\" or a list of layers per stage like [1, 3]";
    case ValueType::kWindow:
      return "\"step\" or a whole number (microbatches) of at least 1";
    case ValueType::kBetas:
      return "two numbers of at least 0 and below 1";
    case ValueType::kAxes:
      return "\"tp\", \"cp\", \"dp\" and \"pp\" once each, fastest first";
    case ValueType::kFiles:
      return "a list of files";
    case ValueType::kNodes:
      return "a whole number (nodes) of at least 1, or [[cluster.nodes]] tables";
    case ValueType::kNotSupported:
      return "no key " + std::string(key.name);
  }
  return {};
}

}  // namespace troupe
