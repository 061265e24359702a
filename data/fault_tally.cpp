#include "data/fault_tally.hpp"

#include <iterator>
#include <stdexcept>

namespace troupe {

/// Number of faults to print. `troupe data check` prints all.
static constexpr std::size_t kShownFaults = 5;

void FaultTally::Add(const std::string& set, const std::string& file, std::int64_t first_row,
                     const DataFault& fault) {
  ++count_;
  if (first_.size() < kShownFaults) {
    first_.push_back(FaultLine(file, fault));
    first_ended_.push_back(first_.back() + (Replaces(fault) ? "; replaced" : "; skipped"));
  }
  if (fault.kind == FaultKind::kFile) unreadable_ = true;
  if (fault.kind == FaultKind::kFile || num_unusable() > policy_.limit) return;
  (Replaces(fault) ? replaced_ : rows_)[set].insert(first_row + fault.row);
  if (Replaces(fault)) ++replaced_files_;
}

void FaultTally::Require() const {
  if (count_ == 0) return;
  std::vector<std::string> lines = first_;
  if (const auto more = count_ - std::ssize(first_); more > 0) {
    lines.push_back("and " + std::to_string(more) + " more faults: `troupe data check` lists all");
  }
  if (!policy_.tolerates() || unreadable_) throw DataError(lines);
  if (num_unusable() <= policy_.limit) return;
  lines.push_back(OverLimit());
  throw DataError(lines);
}

std::string FaultTally::OverLimit() const {
  return policy_.key + ".skip_limit: expected at most " + std::to_string(policy_.limit) +
         " rows and files that cannot be used, got more; `troupe data check` lists all";
}

void FaultTally::RequireWithin(std::int64_t replaced, const std::string& line) const {
  if (Count(rows_) + replaced <= policy_.limit) return;
  throw std::runtime_error(OverLimit() + "; one is " + line);
}

void FaultTally::RequireUsedRow(const std::string& set, const std::vector<std::string>& names,
                                const std::vector<Interval>& sources) const {
  const auto bad = rows_.find(set);
  if (bad == rows_.end()) return;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Interval& source = sources[i];
    const auto first = bad->second.lower_bound(source.begin);
    const auto end = bad->second.lower_bound(source.end);
    if (source.empty() || std::distance(first, end) < source.size()) continue;
    std::vector<std::string> lines = first_;
    lines.push_back(names[i] +
                    ": expected a row without a fault, found none; `troupe data check` lists all");
    throw DataError(lines);
  }
}

std::vector<std::string> FaultTally::SkippedLines() const {
  if (count_ == 0) return {};
  std::vector<std::string> lines = first_ended_;
  const std::string key = policy_.key + ".on_error = " +
                          (policy_.on_error == OnError::kSkip ? "\"skip\": " : "\"substitute\": ");
  const auto rows = [](std::int64_t count) {
    return std::to_string(count) + (count == 1 ? " row is" : " rows are");
  };
  if (const std::int64_t skipped = Count(rows_); skipped > 0) {
    lines.push_back(key + rows(skipped) +
                    " skipped; in training the next row of its source takes its place");
  }
  if (const std::int64_t replaced = Count(replaced_); replaced > 0) {
    lines.push_back(key + rows(replaced) + " used without a file that is bad");
  }
  return lines;
}

std::int64_t FaultTally::Count(const Rows& rows) {
  std::int64_t count = 0;
  for (const auto& [set, of_set] : rows) count += std::ssize(of_set);
  return count;
}

SkippedRows::SkippedRows(const std::set<std::int64_t>& rows, const std::vector<Interval>& sources) {
  std::size_t placed = 0;
  for (const Interval& source : sources) {
    const auto begin = rows.lower_bound(source.begin);
    const auto end = rows.lower_bound(source.end);
    const auto count = std::distance(begin, end);
    placed += static_cast<std::size_t>(count);
    if (count == 0) continue;
    if (count >= source.size()) {
      throw std::invalid_argument("skipped rows: expected fewer than " +
                                  std::to_string(source.size()) + " of a source");
    }
    std::int64_t first_used = source.begin;
    while (rows.contains(first_used)) ++first_used;
    // Runs backwards, so that the row after each one is already resolved.
    for (auto row = end; row != begin;) {
      --row;
      substitutes_[*row] = *row + 1 == source.end ? first_used : Substitute(*row + 1);
    }
  }
  if (placed < rows.size()) throw std::invalid_argument("skipped rows: expected rows of a source");
}

std::string SkippedRows::Text(std::size_t most) const {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [row, substitute] : substitutes_) {
    if (shown++ == most) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(row);
  }
  return text;
}

}  // namespace troupe
