// Rows of a data set that cannot be used, and the rows that replace them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The unused rows of one list. They depend only on the list and its files and are fixed before the
/// first step, so every process has the same ones.
class SkippedRows {
 public:
  /// `rows`: rows of a list of `size` rows. Throws std::invalid_argument for a row outside [0,
  /// size), or if no row is left.
  SkippedRows(std::set<std::int64_t> rows, std::int64_t size);
  SkippedRows() = default;

  bool Contains(std::int64_t row) const { return substitutes_.contains(row); }
  /// Returns `row` if it is used, else the next used row; the first row follows the last.
  std::int64_t Substitute(std::int64_t row) const {
    const auto found = substitutes_.find(row);
    return found == substitutes_.end() ? row : found->second;
  }
  std::int64_t count() const { return std::ssize(substitutes_); }
  /// Returns "3, 8, 12", with at most the first hundred rows.
  std::string Text() const;

 private:
  std::map<std::int64_t, std::int64_t> substitutes_;
};

}  // namespace troupe
