#include <algorithm>
#include <string_view>
#include <utility>

#include "configs/key_value.hpp"
#include "configs/steps.hpp"
#include "layout/text.hpp"

namespace troupe {

using Kind = TomlValue::Kind;

/// Returns whether the key at this dotted path takes a string and no other value that looks like
/// `kind`.
static bool WantsString(std::string_view dotted, Kind kind) {
  const std::vector<std::string> parts = Split(dotted, '.');
  if (parts.size() < 2) return false;
  const std::size_t names = parts[0] == "modules" ? 1 : parts[0] == "edges" ? 2 : 0;
  std::string table = parts[0];
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    table += '.';
    table += i <= names ? std::string(1, '*') : parts[i];
  }
  const KeySpec* key = FindKey(table, parts.back());
  if (key == nullptr || kind == Kind::kString || kind == Kind::kArray || kind == Kind::kTable) {
    return false;
  }
  return key->type == ValueType::kText || key->type == ValueType::kPath ||
         key->type == ValueType::kTokenizer || key->type == ValueType::kWeights ||
         key->type == ValueType::kWord || key->type == ValueType::kRanks;
}

/// Returns the value at the end of a chain of one-entry tables.
static const TomlValue& Leaf(const TomlValue& document) {
  const TomlValue* value = &document;
  while (value->entries.size() == 1 && !value->is_inline) value = &value->entries[0].value;
  return *value;
}

static TomlEntry StringEntry(const std::string& key, const std::string& text, const Place& place) {
  TomlEntry entry{key, place, {}};
  entry.value.kind = Kind::kString;
  entry.value.place = place;
  entry.value.string = text;
  return entry;
}

/// Converts edges.FROM.TO.KEY to the [[edges]] table of a file. Returns false if it has another
/// form.
static bool EdgesAsList(TomlValue& document) {
  TomlEntry* edges = document.Find("edges");
  if (edges == nullptr || !edges->value.Is(Kind::kTable)) return edges == nullptr;
  if (edges->value.entries.size() != 1) return false;
  TomlEntry from = std::move(edges->value.entries[0]);
  if (!from.value.Is(Kind::kTable) || from.value.entries.size() != 1) return false;
  TomlEntry to = std::move(from.value.entries[0]);
  if (!to.value.Is(Kind::kTable)) return false;
  TomlValue edge = std::move(to.value);
  edge.entries.insert(edge.entries.begin(), {StringEntry("from", from.key, from.place),
                                             StringEntry("to", to.key, to.place)});
  edges->value.kind = Kind::kArray;
  edges->value.entries.clear();
  edges->value.items.push_back(std::move(edge));
  return true;
}

/// Returns whether `value` is a plain word. Other TOML values begin with a quote or a bracket. In a
/// plain word, # and quotes are literal: an argument has no comments. An empty value is plain too,
/// since a shell removes its quotes.
static bool IsBare(const std::string& value) {
  constexpr std::string_view kToml = "\"'[{";
  return value.empty() || kToml.find(value.front()) == std::string_view::npos;
}

static std::string KeyOf(const std::string& text, std::size_t equals) {
  std::string key = text.substr(0, equals);
  std::erase(key, ' ');
  return key;
}

/// Returns whether `text` is a key such as run.steps.
static bool IsKey(const std::string& text) {
  const auto parsed = ParseToml(text + "=0", {});
  const auto* document = std::get_if<TomlValue>(&parsed);
  return document != nullptr && Leaf(*document).Is(Kind::kInteger);
}

/// Returns the error of a value that begins like TOML but is not valid.
static std::string ValueFault(const std::string& value, const ConfigError& error) {
  const bool quote = value.starts_with('"') || value.starts_with('\'');
  const bool closed = value.size() > 1 && value.back() == value.front();
  if (!quote || closed) return error.text;
  return std::string("expected the quote ") + value.front() +
         " to close at the end of the value; leave it out, or put \" around all of the value";
}

/// Parses the argument as TOML. A bare value is a string if it is not valid TOML, sets more than
/// one key, or is a number for a key that takes a word.
static std::variant<TomlValue, ConfigError> ParseOverride(const std::string& text,
                                                          std::size_t equals, const Place& place) {
  const std::string key = KeyOf(text, equals);
  const std::string value(Trimmed(std::string_view(text).substr(equals + 1)));
  auto parsed = ParseToml(text, place);
  const auto* document = std::get_if<TomlValue>(&parsed);
  const bool misread = document == nullptr || WantsString(key, Leaf(*document).kind) ||
                       value.find_first_of("\"'#") != std::string::npos;
  if (IsBare(value) && misread) {
    auto again = ParseToml(text.substr(0, equals + 1) + Quoted(value), place);
    if (std::holds_alternative<TomlValue>(again)) return again;
  }
  if (auto* error = std::get_if<ConfigError>(&parsed); error && IsKey(text.substr(0, equals))) {
    error->text = key + ": " + ValueFault(value, *error);
  }
  return parsed;
}

/// Returns the argument as errors show it. Line ends and other control characters would break the
/// message.
static std::string InOneLine(const std::string& text) {
  const bool plain = std::ranges::none_of(text, [](unsigned char c) { return c < 0x20; });
  return plain ? text : Quoted(text);
}

TomlValue ReadOverride(const std::string& text, std::vector<ConfigError>& errors) {
  const Place argument{"--set " + InOneLine(text), 0, 0, true};
  const auto refuse = [&](std::string reason) {
    errors.push_back({argument, std::move(reason)});
    return TomlValue();
  };
  const auto equals = text.find('=');
  // A second line would set a second key, whose place would not be in line 1.
  const bool one_line = text.find_first_of("\n\r") == std::string::npos;
  if (equals == std::string::npos || !one_line) return refuse("expected KEY=VALUE on one line");
  auto parsed = ParseOverride(text, equals, argument);
  if (const auto* error = std::get_if<ConfigError>(&parsed)) return refuse(error->text);
  auto document = std::get<TomlValue>(std::move(parsed));
  // A # before the = comments it out.
  const TomlValue& leaf = Leaf(document);
  if (leaf.Is(Kind::kTable) && !leaf.is_inline) return refuse("expected KEY=VALUE on one line");
  if (document.Find("extends") != nullptr) return refuse("expected extends in a file only");
  if (document.Find("schema") != nullptr) return refuse("expected schema in a file only");
  if (!EdgesAsList(document)) return refuse("expected edges.FROM.TO.KEY=VALUE");
  return document;
}

}  // namespace troupe
