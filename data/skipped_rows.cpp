#include "data/skipped_rows.hpp"

#include <iterator>
#include <stdexcept>

namespace troupe {

SkippedRows::SkippedRows(std::set<std::int64_t> rows, std::int64_t size) {
  if (rows.empty()) return;
  if (*rows.begin() < 0 || *rows.rbegin() >= size || std::ssize(rows) >= size) {
    throw std::invalid_argument("skipped rows: expected fewer than " + std::to_string(size) +
                                " rows in [0, " + std::to_string(size) + ")");
  }
  std::int64_t first_used = 0;
  while (rows.contains(first_used)) ++first_used;
  // Runs backwards, so that the row after each one is already resolved.
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    substitutes_[*row] = *row + 1 == size ? first_used : Substitute(*row + 1);
  }
}

std::string SkippedRows::Text() const {
  constexpr int kShown = 100;
  std::string text;
  int shown = 0;
  for (const auto& [row, substitute] : substitutes_) {
    if (shown++ == kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(row);
  }
  return text;
}

}  // namespace troupe
