#include "configs/suggest.hpp"

#include <algorithm>

#include "layout/text.hpp"

namespace troupe {

int EditDistance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return cost[i * columns + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<int>(i + j);
        continue;
      }
      const int replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return cost.back();
}

std::string Nearest(std::string_view word, std::span<const std::string> known) {
  // Keys are short, so a longer word is not a misspelling. The edit distance takes quadratic time.
  if (word.size() > 64) return {};
  std::string nearest;
  int least = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const auto& candidate : known) {
    const int distance = EditDistance(word, candidate);
    const bool shares_something = distance < static_cast<int>(candidate.size());
    if (distance >= least || !shares_something) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string Alternatives(std::span<const std::string> words) { return ListedWithOr(words, Quoted); }

std::string KindsText(KindSet kinds) {
  std::vector<std::string> words;
  for (const ModuleKind* kind : Kinds()) {
    if ((kinds & Only(*kind)) != 0) words.emplace_back(kind->word);
  }
  return Alternatives(words);
}

/// Returns the kinds of module that have this key or table; 0 if none has.
static KindSet KindsWith(std::string_view table, const std::string& name) {
  const TableSpec* sub = FindTable(std::string(table) + "." + name);
  return KindsWithKey(table, name) | (sub == nullptr ? 0 : sub->kinds);
}

/// Returns the other tables that have this key: "[run] or [optimizer]".
static std::string TablesWith(std::string_view table, const std::string& name) {
  std::vector<std::string> titles;
  for (const auto& other : Tables()) {
    if (other.path == table || FindKey(other.path, name) == nullptr) continue;
    titles.emplace_back(other.title);
  }
  return ListedWithOr(titles);
}

/// Returns "learning_rate (in [optimizer])" or "[modules.NAME]"; within `table` just
/// `"learning_rate"`.
static std::string Described(const MeantKey& meant, std::string_view table) {
  const std::string title(FindTable(meant.table)->title);
  if (meant.key.empty()) return title;
  if (meant.table == table) return Quoted(meant.key);
  return std::string(meant.key) + " (in " + title + ")";
}

/// Returns our name for a word of other programs, or for one of our words with other hyphens or
/// capitals: "learning_rate (in [optimizer])". Empty if it is neither.
static std::string OursFor(const TomlEntry& entry, std::string_view table, KindSet kinds) {
  const std::string folded = FoldedKey(entry.key);
  if (folded != entry.key && FindKey(table, folded, kinds) != nullptr) return Quoted(folded);
  std::vector<MeantKey> meant = MeantBy(entry.key);
  // A table can only mean a table, and any other value only a key.
  std::erase_if(meant, [&](const MeantKey& key) {
    return key.key.empty() != entry.value.Is(TomlValue::Kind::kTable);
  });
  // Keys of this table take precedence over those of other tables.
  if (std::ranges::count(meant, table, &MeantKey::table) > 0) {
    std::erase_if(meant, [&](const MeantKey& key) { return key.table != table; });
  }
  return Listed(meant, " or ", [&](const MeantKey& key) { return Described(key, table); });
}

/// Returns "; "vocab" belongs to kind "llama"" for a key that modules of other kinds have, under
/// our name or that of another program. Else returns "".
static std::string OtherKind(const std::string& name, std::string_view table, KindSet kinds) {
  if (const KindSet own = KindsWith(table, name); own != 0) {
    return "; it belongs to kind " + KindsText(own);
  }
  for (const MeantKey& key : MeantBy(name)) {
    if (key.table != table || key.key.empty() || FindKey(table, key.key, kinds) != nullptr)
      continue;
    return "; " + Quoted(key.key) + " belongs to kind " + KindsText(KindsWithKey(table, key.key));
  }
  return {};
}

UnknownKey AnswerUnknown(const TomlEntry& entry, std::string_view table, KindSet kinds,
                         const std::string& listed_at) {
  const bool is_table = entry.value.Is(TomlValue::Kind::kTable);
  const std::string what = is_table ? "unknown table" : "unknown key";
  if (const std::string other = OtherKind(entry.key, table, kinds); !other.empty()) {
    return {what + " for kind " + KindsText(kinds) + other};
  }
  if (const std::string tables = TablesWith(table, entry.key); !is_table && !tables.empty()) {
    return {what + "; it belongs in " + tables};
  }
  if (const std::string ours = OursFor(entry, table, kinds); !ours.empty()) {
    const std::string advice(AdviceOn(entry.key));
    return {what + "; did you mean " + ours + "?" + (advice.empty() ? "" : " " + advice)};
  }
  auto names = NamesIn(table, kinds);
  const std::string nearest = Nearest(entry.key, names);
  if (!nearest.empty()) return {what + "; did you mean " + Quoted(nearest) + "?"};
  const auto is_key = [&](const std::string& name) { return FindKey(table, name) != nullptr; };
  const bool only_tables = is_table && !std::ranges::all_of(names, is_key);
  if (only_tables) std::erase_if(names, is_key);
  if (!listed_at.empty()) return {what + "; what may stand there is listed at " + listed_at};
  return {what + "; expected " + Alternatives(names), !only_tables};
}

}  // namespace troupe
