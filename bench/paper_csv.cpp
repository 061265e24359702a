#include "bench/paper_csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "files/text_file.hpp"

namespace troupe::bench {
namespace {

std::string Trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Commas in quotes belong to the field; two quotes in quotes are one.
std::vector<std::string> FieldsOf(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (letter == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += letter;
    }
  }
  for (std::string& field : fields) field = Trimmed(field);
  return fields;
}

void ExpectColumns(const std::string& path, const std::vector<std::string>& columns,
                   const std::vector<std::string>& required) {
  for (const std::string& column : required) {
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) continue;
    throw std::runtime_error(path + ": expected a column \"" + column +
                             "\" in its first line, got \"" + columns.front() +
                             (columns.size() > 1 ? "\" and others" : "\""));
  }
}

}  // namespace

std::string CsvRow::Text(const std::string& column) const {
  const auto found = fields_.find(column);
  return found == fields_.end() ? std::string() : found->second;
}

double CsvRow::Number(const std::string& column) const {
  const std::string text = Text(column);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(number)) {
    throw std::runtime_error(place_ + ": " + column + ": expected a number, got \"" + text + "\"");
  }
  return number;
}

int CsvRow::Count(const std::string& column) const {
  constexpr double kMost = 1e9;
  const double number = Number(column);
  if (number < 1.0 || number > kMost || number != std::floor(number)) {
    throw std::runtime_error(place_ + ": " + column +
                             ": expected a whole number from 1 to 1e9, got \"" + Text(column) +
                             "\"");
  }
  return static_cast<int>(number);
}

std::vector<CsvRow> ReadCsv(const std::string& path, const std::vector<std::string>& required) {
  std::istringstream lines(ReadWholeFile(path));
  std::string line;
  std::getline(lines, line);
  if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
  const std::vector<std::string> columns = FieldsOf(line);
  ExpectColumns(path, columns, required);
  const std::string name = std::filesystem::path(path).filename().string();
  std::vector<CsvRow> rows;
  for (int number = 2; std::getline(lines, line); ++number) {
    if (Trimmed(line).empty()) continue;
    const std::string place = name + ":" + std::to_string(number);
    const std::vector<std::string> fields = FieldsOf(line);
    if (fields.size() > columns.size()) {
      throw std::runtime_error(place + ": expected at most " + std::to_string(columns.size()) +
                               " fields, got " + std::to_string(fields.size()));
    }
    std::map<std::string, std::string> named;
    for (std::size_t i = 0; i < fields.size(); ++i) named[columns[i]] = fields[i];
    rows.emplace_back(place, std::move(named));
  }
  return rows;
}

}  // namespace troupe::bench
