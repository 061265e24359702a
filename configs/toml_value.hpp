// A TOML document as plain data in file order, every key and value with its place. The rest of
// configs/ uses it, so only one source includes the parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The place of a key or value. Lines and columns count from 1; 0 = the file as a whole.
struct Place {
  std::string file;  ///< for an argument its text, `--set run.steps=20`
  int line = 0;
  int column = 0;
  bool argument = false;  ///< on the command line: errors show no line and column
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// "file:line:column", or "file" when the line is 0.
std::string ToString(const Place& place);

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
  TomlEntry* Find(std::string_view key);
  const TomlEntry* Find(std::string_view key) const;
  void Erase(std::string_view key);
};

struct TomlEntry {
  std::string key;
  Place place;  ///< of the key
  TomlValue value;
};

/// Returns `text` as a TOML string, quoted and escaped.
std::string Quoted(std::string_view text);

/// Returns the shortest TOML float that reads back as `value`.
std::string NumberText(double value);

/// Returns `value` as TOML on one line.
std::string ToToml(const TomlValue& value);

/// Returns `value` as errors describe it: `the string "8"`, `2.5`, `an array`.
std::string Described(const TomlValue& value);

}  // namespace troupe
