#include "configs/toml_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "layout/text.hpp"

namespace troupe {

const TomlEntry* TomlValue::Find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &TomlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

TomlEntry* TomlValue::Find(std::string_view key) {
  return const_cast<TomlEntry*>(std::as_const(*this).Find(key));
}

void TomlValue::Erase(std::string_view key) {
  std::erase_if(entries, [key](const TomlEntry& entry) { return entry.key == key; });
}

std::string Quoted(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string NumberText(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  // Without a point or an exponent, TOML reads an integer.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

static std::string TableToml(const TomlValue& table) {
  if (table.entries.empty()) return "{}";
  const auto text_of = [](const TomlEntry& e) { return e.key + " = " + ToToml(e.value); };
  return "{ " + Listed(table.entries, ", ", text_of) + " }";
}

std::string ToToml(const TomlValue& value) {
  switch (value.kind) {
    case TomlValue::Kind::kTable:
      return TableToml(value);
    case TomlValue::Kind::kArray:
      return "[" + Listed(value.items, ", ", ToToml) + "]";
    case TomlValue::Kind::kString:
      return Quoted(value.string);
    case TomlValue::Kind::kInteger:
      return std::to_string(value.integer);
    case TomlValue::Kind::kFloat:
      return NumberText(value.number);
    case TomlValue::Kind::kBoolean:
      return value.boolean ? "true" : "false";
    case TomlValue::Kind::kTime:
      return value.string;
  }
  return {};
}

std::string Described(const TomlValue& value) {
  switch (value.kind) {
    case TomlValue::Kind::kTable:
      return "a table";
    case TomlValue::Kind::kArray:
      return "the list " + ToToml(value);
    case TomlValue::Kind::kString:
      return "the string " + Quoted(value.string);
    case TomlValue::Kind::kTime:
      return "the date or time " + value.string;
    default:
      return ToToml(value);
  }
}

static Place PlaceOf(const toml::source_region& source, const Place& whole) {
  return {whole.file, static_cast<int>(source.begin.line), static_cast<int>(source.begin.column),
          whole.argument};
}

static TomlValue Convert(const toml::node& node, const Place& whole);

static void ConvertTable(const toml::table& table, const Place& whole, TomlValue& out) {
  out.kind = TomlValue::Kind::kTable;
  out.is_inline = table.is_inline();
  for (const auto& [key, node] : table) {
    const Place place = PlaceOf(key.source(), whole);
    out.entries.push_back({std::string(key.str()), place, Convert(node, whole)});
  }
  // The parser sorts tables by key, but modules keep the order in which they are written.
  std::ranges::stable_sort(out.entries, {}, &TomlEntry::place);
}

static TomlValue Convert(const toml::node& node, const Place& whole) {
  TomlValue out;
  out.place = PlaceOf(node.source(), whole);
  node.visit([&](const auto& value) {
    using Type = std::decay_t<decltype(value)>;
    if constexpr (toml::is_table<Type>) {
      ConvertTable(value, whole, out);
    } else if constexpr (toml::is_array<Type>) {
      out.kind = TomlValue::Kind::kArray;
      for (const auto& item : value) out.items.push_back(Convert(item, whole));
    } else if constexpr (toml::is_string<Type>) {
      out.kind = TomlValue::Kind::kString;
      out.string = value.get();
    } else if constexpr (toml::is_integer<Type>) {
      out.kind = TomlValue::Kind::kInteger;
      out.integer = value.get();
    } else if constexpr (toml::is_floating_point<Type>) {
      out.kind = TomlValue::Kind::kFloat;
      out.number = value.get();
    } else if constexpr (toml::is_boolean<Type>) {
      out.kind = TomlValue::Kind::kBoolean;
      out.boolean = value.get();
    } else {
      out.kind = TomlValue::Kind::kTime;
      out.string = (std::ostringstream() << value.get()).str();
    }
  });
  return out;
}

/// Returns the parser's text followed by ours. The parser describes only the type that it guessed.
static std::string SyntaxText(std::string_view description) {
  static constexpr std::string_view kPrefix = "Error while parsing ";
  const bool prefixed = description.starts_with(kPrefix);
  std::string text = prefixed ? "in the " : "";
  text += description.substr(prefixed ? kPrefix.size() : 0);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  text = "not valid TOML: " + text + "; expected ";
  const bool twice = description.find("redefine") != std::string_view::npos;
  return text + (twice ? "each key and table once in a file" : "key = value, words in quotes");
}

std::variant<TomlValue, ConfigError> ParseToml(const std::string& text, const Place& whole) {
  if (auto fault = FindTomlFault(text)) {
    fault->place.file = whole.file;
    fault->place.argument = whole.argument;
    return *fault;
  }
  const toml::parse_result result = toml::parse(std::string_view(text));
  if (result.failed()) {
    return ConfigError{PlaceOf(result.error().source(), whole),
                       SyntaxText(result.error().description())};
  }
  TomlValue out = Convert(result.table(), whole);
  out.place = whole;
  return out;
}

}  // namespace troupe
