// Rows of a data set that cannot be used, and the rows that take their places.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The rows of one list that are not used. Fixed before the first step from the list and the images
/// alone, so that every process comes to the same ones.
class SkippedRows {
 public:
  /// `rows` of a list of `size`, each at most once in effect. Throws std::invalid_argument for a
  /// row outside [0, size), and if none is left.
  SkippedRows(std::set<std::int64_t> rows, std::int64_t size);
  SkippedRows() = default;

  bool Contains(std::int64_t row) const { return substitutes_.contains(row); }
  /// `row`, or the next row after it that is used; the first follows the last.
  std::int64_t Substitute(std::int64_t row) const {
    const auto found = substitutes_.find(row);
    return found == substitutes_.end() ? row : found->second;
  }
  std::int64_t count() const { return std::ssize(substitutes_); }
  /// "3, 8, 12", at most the first hundred.
  std::string Text() const;

 private:
  std::map<std::int64_t, std::int64_t> substitutes_;
};

}  // namespace troupe
