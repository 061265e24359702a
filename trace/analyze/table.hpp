// Tables of analyses: for people, as CSV and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/text.hpp"

namespace troupe {

/// A cell of a table, as text; `number` cells are right-aligned, and not quoted in JSON.
struct Cell {
  std::string text;
  bool number = false;
  bool null = false;

  Cell(std::string words) : text(std::move(words)) {}                      // NOLINT(*-explicit-*)
  Cell(const char* words) : text(words) {}                                 // NOLINT(*-explicit-*)
  Cell(std::int64_t value) : text(std::to_string(value)), number(true) {}  // NOLINT(*-explicit-*)
  Cell(int value) : text(std::to_string(value)), number(true) {}           // NOLINT(*-explicit-*)
  /// A formatted number: "1.25", "37.5%" (the latter only for people).
  static Cell Number(std::string written);
  static Cell Null();
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

/// Columns two blanks apart, numbers right-aligned; no trailing blanks. Control characters
/// become '?', so that a name cannot control the terminal.
std::string ToText(const Table& table);
/// The same for rows of text; the first row is the head.
std::string Columns(const std::vector<std::vector<std::string>>& rows);
/// RFC 4180, "\n" at line ends; null is empty.
std::string ToCsv(const Table& table);
/// One array of objects, one object a line.
std::string ToJson(const Table& table);

/// `text` as a quoted JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);
/// `text` with '?' for control characters and U+FFFD for bytes that are not UTF-8.
std::string CleanText(std::string_view text);

}  // namespace troupe
