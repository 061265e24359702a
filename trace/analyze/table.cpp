#include "trace/analyze/table.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace troupe {
namespace {

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
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

/// Length of the UTF-8 character at `at` in bytes; 0: invalid.
std::size_t CharacterAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xC2 && first < 0xE0  ? 2
                             : first >= 0xE0 && first < 0xF0  ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  if (length == 3 && first == 0xE0 && byte(at + 1) < 0xA0) return 0;  // too long
  if (length == 3 && first == 0xED && byte(at + 1) > 0x9F) return 0;  // surrogates
  if (length == 4 && first == 0xF0 && byte(at + 1) < 0x90) return 0;
  if (length == 4 && first == 0xF4 && byte(at + 1) > 0x8F) return 0;
  return length;
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
  std::string text;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    text += (c == 0 ? "" : ",") + CsvField(table.columns[c]);
  }
  text += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      text += (c == 0 ? "" : ",") + CsvField(row[c].text);
    text += '\n';
  }
  return text;
}

std::string ToJson(const Table& table) {
  std::string text = "[";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    text += r == 0 ? "\n{" : ",\n{";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const Cell& cell = table.rows[r][c];
      text += (c == 0 ? "" : ",") + JsonString(table.columns[c]) + ":";
      text += cell.null                                ? "null"
              : cell.number && IsJsonNumber(cell.text) ? cell.text
                                                       : JsonString(cell.text);
    }
    text += '}';
  }
  return text + "\n]\n";
}

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
      ++at;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += Formatted("\\u%04x", static_cast<unsigned>(c));
      ++at;
    } else {
      const std::size_t length = CharacterAt(text, at);
      quoted += length == 0 ? "\xEF\xBF\xBD" : text.substr(at, length);
      at += std::max<std::size_t>(length, 1);
    }
  }
  return quoted + '"';
}

std::string CleanText(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = CharacterAt(text, at);
    clean += length == 0 ? "\xEF\xBF\xBD" : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return Printable(std::move(clean));
}

}  // namespace troupe
