// Tables of comma-separated values whose columns have names and may be in any order.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace troupe::bench {

/// One row. A column that the table does not have is empty.
class CsvRow {
 public:
  CsvRow(std::string place, std::map<std::string, std::string> fields)
      : place_(std::move(place)), fields_(std::move(fields)) {}

  /// "table_a2.csv:3".
  const std::string& place() const { return place_; }
  std::string Text(const std::string& column) const;
  bool Has(const std::string& column) const { return !Text(column).empty(); }
  /// Throws std::runtime_error with place and column: expected a number.
  double Number(const std::string& column) const;
  /// Likewise: expected a whole number above 0.
  int Count(const std::string& column) const;

 private:
  std::string place_;
  std::map<std::string, std::string> fields_;
};

/// Reads `path`, whose first line names the columns. Fields may be quoted. Throws std::runtime_error with
/// the path: unreadable, a column of `required` is missing, a row with more fields than columns.
std::vector<CsvRow> ReadCsv(const std::string& path, const std::vector<std::string>& required);

}  // namespace troupe::bench
