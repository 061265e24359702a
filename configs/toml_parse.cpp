#include "configs/toml_parse.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "configs/toml_scan.hpp"

namespace troupe {

static Place PlaceOf(const toml::source_region& source, const std::string& file) {
  return {file, static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

static TomlValue Convert(const toml::node& node, const std::string& file);

static void ConvertTable(const toml::table& table, const std::string& file, TomlValue& out) {
  out.kind = TomlValue::Kind::kTable;
  out.is_inline = table.is_inline();
  for (const auto& [key, node] : table) {
    const Place place = PlaceOf(key.source(), file);
    out.entries.push_back({std::string(key.str()), place, Convert(node, file)});
  }
  // The parser sorts tables by key, but modules keep the order in which they are written.
  std::ranges::stable_sort(out.entries, {}, [](const TomlEntry& entry) {
    return std::make_tuple(entry.place.line, entry.place.column);
  });
}

template <typename T>
static std::string TimeText(const T& time) {
  std::ostringstream text;
  text << time;
  return text.str();
}

static TomlValue Convert(const toml::node& node, const std::string& file) {
  TomlValue out;
  out.place = PlaceOf(node.source(), file);
  node.visit([&](const auto& value) {
    using Type = std::decay_t<decltype(value)>;
    if constexpr (toml::is_table<Type>) {
      ConvertTable(value, file, out);
    } else if constexpr (toml::is_array<Type>) {
      out.kind = TomlValue::Kind::kArray;
      for (const auto& item : value) out.items.push_back(Convert(item, file));
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
      out.string = TimeText(value.get());
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

std::variant<TomlValue, ConfigError> ParseToml(const std::string& text, const std::string& file) {
  if (const auto fault = FindTomlFault(text)) {
    return ConfigError{file, fault->line, fault->column, fault->text};
  }
  const toml::parse_result result = toml::parse(std::string_view(text), std::string_view(file));
  if (result.failed()) {
    const Place place = PlaceOf(result.error().source(), file);
    return ConfigError{file, place.line, place.column, SyntaxText(result.error().description())};
  }
  TomlValue out = Convert(result.table(), file);
  out.place = {file, 0, 0};
  return out;
}

}  // namespace troupe
