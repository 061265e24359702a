// Faults of a data set, as values and as lines of text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layout/text.hpp"

namespace troupe {

/// A data set that cannot be used: one line per fault, with file, row, id and reason.
class DataError : public std::runtime_error {
 public:
  explicit DataError(const std::string& line) : DataError(std::vector<std::string>{line}) {}
  explicit DataError(std::vector<std::string> lines)
      : std::runtime_error(Listed(lines, "\n")), lines_(std::move(lines)) {}

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

enum class FaultKind : std::uint8_t {
  kFile,     ///< the list: rows after it are unknown
  kRow,      ///< a row that cannot be read
  kContext,  ///< a row that does not fit the configuration
  kItem      ///< a file that a row names
};

struct DataFault {
  FaultKind kind = FaultKind::kRow;
  std::int64_t row = -1;  ///< place in the list, from 0; kFile: the first unknown row
  std::string id;         ///< of the row; may be empty
  std::string reason;     ///< one line; kItem: begins with the path
  std::int64_t line = 0;  ///< in a file with one row a line, from 1; 0: unknown
  /// kItem: the row can be used with zeros in the place of the file.
  bool replaceable = false;
};

/// Returns `FILE: row 3 (id "a7")`, with a known line `FILE:12: row 3 ...`.
std::string RowName(const std::string& file, const DataFault& fault);
/// Returns `FILE: row 3 (id "a7"): reason`, with a known line `FILE:12: row 3 ...`; one line.
std::string FaultLine(const std::string& file, const DataFault& fault);

/// One fault of `file`.
class FaultError : public DataError {
 public:
  FaultError(const std::string& file, DataFault fault)
      : DataError(FaultLine(file, fault)), fault_(std::move(fault)) {}
  const DataFault& fault() const { return fault_; }

 private:
  DataFault fault_;
};

}  // namespace troupe
