// A whole list in memory.
#pragma once

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/rows/llava.hpp"
#include "data/rows/row_file.hpp"
#include "files/text_file.hpp"

namespace troupe {

struct ReadRows : LlavaSet {
  std::vector<DataFault> faults;    ///< in the order of the rows
  std::set<std::int64_t> unusable;  ///< rows that have one
};

/// Reads all rows of `file`, those with a fault as unusable ones. Throws FaultError if it cannot be opened.
inline ReadRows ReadLlava(const std::string& file, const std::vector<RowField>& fields) {
  ReadRows set;
  set.file = file;
  std::vector<RowSpan> spans;
  std::string failure;
  try {
    FormatOfFile(file).Scan(file, [&](const RowSpan& span) { spans.push_back(span); });
  } catch (const std::runtime_error& error) {
    failure = error.what();
    if (!WhyNotOpened(file).empty()) {
      throw FaultError(file, {FaultKind::kFile, 0, "", failure});
    }
  }
  const RowFile open({file});
  for (const RowSpan& span : spans) {
    RowFacts facts{.span = span, .lengths = {}};
    try {
      set.rows.push_back(open.ReadFirst(std::ssize(set.rows), fields, facts));
    } catch (const FaultError& error) {
      const DataFault& fault = error.fault();
      set.faults.push_back(fault);
      set.unusable.insert(fault.row);
      set.rows.push_back({.index = fault.row,
                          .id = fault.id,
                          .files = std::vector<std::vector<std::string>>(fields.size()),
                          .turns = {},
                          .line = fault.line});
    }
  }
  if (!failure.empty()) {
    set.faults.push_back({FaultKind::kFile, std::ssize(set.rows), "", failure});
  }
  return set;
}

}  // namespace troupe
