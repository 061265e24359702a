#include "trace/analyze/table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "files/strict_json.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

/// "12", "-1.5e+30"; not "37.5%", which is a number for people only.
bool IsJsonNumber(const std::string& text) {
  const std::size_t first = text.find_first_not_of('-');
  return first <= 1 && text.find_first_not_of("0123456789.eE+-") == std::string::npos &&
         text[first] >= '0' && text[first] <= '9';
}

std::string JsonValue(const Cell& cell) {
  if (cell.null) return "null";
  return cell.number && IsJsonNumber(cell.text) ? cell.text : JsonString(cell.text);
}

}  // namespace

Cell Cell::Number(std::string written) {
  Cell cell(std::move(written));
  cell.number = true;
  return cell;
}

Cell Cell::Null() {
  Cell cell("");
  cell.null = true;
  return cell;
}

std::string ToText(const Table& table) {
  std::vector<std::size_t> widths;
  std::vector<bool> right(table.columns.size(), !table.rows.empty());
  for (const std::string& column : table.columns) widths.push_back(Width(column));
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], Width(row[c].text));
      if (!row[c].number && !row[c].null) right[c] = false;
    }
  }
  std::string text;
  const auto add = [&](const auto& text_of) {
    std::string line;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string cell = Printable(text_of(c));
      const std::string blanks(widths[c] - std::min(widths[c], Width(cell)), ' ');
      line += right[c] ? blanks + cell : cell + blanks;
      line += "  ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  add([&](std::size_t c) { return table.columns[c]; });
  for (const auto& row : table.rows) add([&](std::size_t c) { return row[c].text; });
  return text;
}

std::string Columns(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  Table table{rows.front(), {}};
  for (const auto& row : std::span(rows).subspan(1)) {
    table.rows.emplace_back(row.begin(), row.end()).resize(table.columns.size(), Cell(""));
  }
  return ToText(table);
}

std::string ToCsv(const Table& table) {
  const auto field_of = [](const Cell& cell) { return CsvField(cell.text); };
  std::string text = Listed(table.columns, ",", CsvField) + '\n';
  for (const auto& row : table.rows) text += Listed(row, ",", field_of) + '\n';
  return text;
}

std::string ToJson(const Table& table) {
  const auto object_of = [&](const std::vector<Cell>& row) {
    std::string text;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += (c == 0 ? "" : ",") + JsonString(table.columns[c]) + ":" + JsonValue(row[c]);
    }
    return "\n{" + text + "}";
  };
  return "[" + Listed(table.rows, ",", object_of) + "\n]\n";
}

std::string JsonString(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string CleanText(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return Printable(std::string(text));
  return Printable(ParseOwnJson(JsonString(text)).get<std::string>());
}

}  // namespace troupe
