#include "configs/unknown_key.hpp"

#include <algorithm>
#include <vector>

#include "configs/spelling.hpp"

namespace troupe {

static std::string KindsText(KindSet kinds) {
  std::vector<std::string> words;
  const auto all = KindWords();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((kinds & (1U << i)) != 0) words.push_back(all[i]);
  }
  return Alternatives(words);
}

/// The kinds of module that have this key or table; 0 when none has.
static KindSet KindsWith(std::string_view table, const std::string& name) {
  KindSet kinds = 0;
  for (const auto& key : Keys()) {
    if (key.table == table && key.name == name) kinds |= key.kinds;
  }
  const TableSpec* sub = FindTable(std::string(table) + "." + name);
  return sub == nullptr ? kinds : kinds | sub->kinds;
}

/// "[run] or [optimizer]": the other tables that have this key.
static std::string TablesWith(std::string_view table, const std::string& name) {
  std::vector<std::string_view> titles;
  for (const auto& other : Tables()) {
    if (other.path != table && FindKey(other.path, name) != nullptr) titles.push_back(other.title);
  }
  std::string text;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (i > 0) text += i + 1 == titles.size() ? " or " : ", ";
    text += titles[i];
  }
  return text;
}

std::string UnknownText(const TomlEntry& entry, std::string_view table, KindSet kinds) {
  const bool is_table = entry.value.Is(TomlValue::Kind::kTable);
  const std::string what = is_table ? "unknown table" : "unknown key";
  if (const KindSet elsewhere = KindsWith(table, entry.key); elsewhere != 0) {
    return what + " for kind " + KindsText(kinds) + "; it belongs to kind " + KindsText(elsewhere);
  }
  if (const std::string tables = TablesWith(table, entry.key); !is_table && !tables.empty()) {
    return what + "; it belongs in " + tables;
  }
  auto names = NamesIn(table, kinds);
  const std::string nearest = Nearest(entry.key, names);
  const auto is_key = [&](const std::string& name) { return FindKey(table, name) != nullptr; };
  if (is_table && !std::ranges::all_of(names, is_key)) std::erase_if(names, is_key);
  if (nearest.empty()) return what + "; expected " + Alternatives(names);
  return what + "; did you mean " + Quoted(nearest) + "?";
}

}  // namespace troupe
