// Whether a scan that goes on after a row finds what a whole scan finds.
#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/rows/row_format.hpp"
#include "tests/fuzz/scratch.hpp"

namespace troupe::fuzz {

struct Scanned {
  std::vector<RowSpan> rows;
  bool failed = false;
};

inline Scanned Scan(const std::string& path, const std::optional<RowSpan>& last) {
  Scanned scanned;
  try {
    FormatOfFile(path).ScanAfter(path, last,
                                 [&](const RowSpan& row) { scanned.rows.push_back(row); });
  } catch (const std::runtime_error&) {
    scanned.failed = true;
  }
  return scanned;
}

/// Goes on after each of the first few rows. A scan may fail where it begins.
inline void RequireScansAgree(const std::string& path) {
  const Scanned whole = Scan(path, std::nullopt);
  constexpr std::size_t kFew = 8;
  for (std::size_t i = 0; i < std::min(kFew, whole.rows.size()); ++i) {
    const Scanned rest = Scan(path, whole.rows[i]);
    if (rest.failed && rest.rows.empty()) continue;
    const auto same = [](const RowSpan& a, const RowSpan& b) {
      return a.offset == b.offset && a.size == b.size && a.line == b.line;
    };
    Require(rest.failed == whole.failed);
    Require(std::equal(rest.rows.begin(), rest.rows.end(),
                       whole.rows.begin() + static_cast<std::ptrdiff_t>(i) + 1, whole.rows.end(),
                       same));
  }
}

}  // namespace troupe::fuzz
