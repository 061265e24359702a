#include "configs/toml_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace troupe {

std::string ToString(const Place& place) {
  if (place.line == 0) return place.file;
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

const TomlEntry* TomlValue::Find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &TomlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

TomlEntry* TomlValue::Find(std::string_view key) {
  const auto found = std::ranges::find(entries, key, &TomlEntry::key);
  return found == entries.end() ? nullptr : &*found;
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
  std::string text;
  for (const auto& entry : table.entries) {
    text += (text.empty() ? " " : ", ") + entry.key + " = " + ToToml(entry.value);
  }
  return "{" + text + (text.empty() ? "}" : " }");
}

static std::string ArrayToml(const TomlValue& array) {
  std::string text;
  for (const auto& item : array.items) text += (text.empty() ? "" : ", ") + ToToml(item);
  return "[" + text + "]";
}

std::string ToToml(const TomlValue& value) {
  switch (value.kind) {
    case TomlValue::Kind::kTable:
      return TableToml(value);
    case TomlValue::Kind::kArray:
      return ArrayToml(value);
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

}  // namespace troupe
