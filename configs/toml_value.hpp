// A TOML document as plain data in file order, every key and value with its place. The rest of
// configs/ uses it, so only toml_value.cpp includes the parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/report.hpp"

namespace troupe {

/// A value that a later file or --set replaced.
struct Replaced {
  Place place;
  std::string text;  ///< as TOML
};

struct TomlEntry;

struct TomlValue {
  enum class Kind { kTable, kArray, kString, kInteger, kFloat, kBoolean, kTime };

  Kind kind = Kind::kTable;
  Place place;
  std::vector<TomlEntry> entries;  ///< of a table, in file order
  bool is_inline = false;          ///< a table written in braces
  std::vector<TomlValue> items;    ///< of an array
  std::string string;
  std::int64_t integer = 0;
  double number = 0.0;
  bool boolean = false;
  std::vector<Replaced> replaced;  ///< oldest first

  bool Is(Kind wanted) const { return kind == wanted; }
  const TomlEntry* Find(std::string_view key) const;
  TomlEntry* Find(std::string_view key);
  void Erase(std::string_view key);
};

struct TomlEntry {
  std::string key;
  Place place;  ///< of the key
  TomlValue value;
};

/// Returns the document in `text`, or its syntax error. `whole` is the place of the text: a file
/// or an argument.
std::variant<TomlValue, ConfigError> ParseToml(const std::string& text, const Place& whole);

/// Finds input that toml++ 3.3.0 must not read. Returns the first of these in `text`, which may
/// begin with a byte order mark, with its line and column in characters:
///   - bytes that are not UTF-8
///   - a control or non-ASCII character outside strings and comments, where TOML 1.0 allows neither
///   - a non-ASCII character where a multi-line string goes on after a backslash: valid TOML, but
///     the parser's test for white space is undefined for many of them
///   - a key with more than 1000 dots, its tables in braces included: all code that walks the
///     tables is recursive
/// The parser reports all other errors.
std::optional<ConfigError> FindTomlFault(std::string_view text);

/// Returns `text` as a TOML string, quoted and escaped.
std::string Quoted(std::string_view text);

/// Returns the shortest TOML float that reads back as `value`.
std::string NumberText(double value);

/// Returns `value` as TOML on one line.
std::string ToToml(const TomlValue& value);

/// Returns `value` as errors describe it: `the string "8"`, `2.5`, `an array`.
std::string Described(const TomlValue& value);

}  // namespace troupe
