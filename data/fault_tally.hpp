// Decides from the faults of a job's lists whether it may start, and which rows it skips.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.hpp"
#include "data/rows/data_error.hpp"
#include "layout/route.hpp"

namespace troupe {

/// The treatment of rows and files that cannot be used.
struct FaultPolicy {
  OnError on_error = OnError::kStop;
  std::int64_t limit = 100;  ///< most rows skipped and files replaced
  std::string key = "data";  ///< of the table that states it

  bool tolerates() const { return on_error != OnError::kStop; }
};

/// Returns the policy of sources that state none.
inline FaultPolicy PolicyOf(const DataConfig& data) { return {data.on_error, data.skip_limit}; }

/// The faults of the rows that one policy is for. Keeps the first few and counts the others. Its size does
/// not grow with their number.
class FaultTally {
 public:
  explicit FaultTally(FaultPolicy policy) : policy_(std::move(policy)) {}

  /// Records a fault of `file`, whose first row is number `first_row` of the set `set`.
  void Add(const std::string& set, const std::string& file, std::int64_t first_row,
           const DataFault& fault);
  /// Throws DataError if the job may not start: there is a fault and the policy is to stop, a list could
  /// not be read to its end, or skipped rows and replaced files are more than the limit.
  void Require() const;

  /// Throws DataError if each row of one of the set's sources is skipped. `names`: of the sources.
  void RequireUsedRow(const std::string& set, const std::vector<std::string>& names,
                      const std::vector<Interval>& sources) const;

  /// Returns the rows of `set` that are skipped.
  const std::set<std::int64_t>& RowsOf(const std::string& set) { return rows_[set]; }
  /// Like RowSource::skipped_lines.
  std::vector<std::string> SkippedLines() const;
  /// Throws std::runtime_error if the skipped rows and `replaced` files are more than the limit. `line` is
  /// about one of them, for the error.
  void RequireWithin(std::int64_t replaced, const std::string& line) const;
  const FaultPolicy& policy() const { return policy_; }

 private:
  std::string OverLimit() const;
  std::int64_t num_unusable() const { return Count(rows_) + replaced_files_; }
  using Rows = std::map<std::string, std::set<std::int64_t>>;  ///< by set
  static std::int64_t Count(const Rows& rows);
  /// Whether the row stays and its file is replaced.
  bool Replaces(const DataFault& fault) const {
    return fault.replaceable && policy_.on_error == OnError::kSubstitute;
  }

  FaultPolicy policy_;
  std::int64_t count_ = 0;
  std::vector<std::string> first_;        ///< lines
  std::vector<std::string> first_ended_;  ///< the same, with what is done
  bool unreadable_ = false;               ///< a list has unknown rows
  Rows rows_;                             ///< that are skipped: no more than may be
  Rows replaced_;                         ///< likewise: with files that are replaced
  std::int64_t replaced_files_ = 0;
};

/// The unused rows of one set. They depend only on its files and are fixed before the first step, so every
/// process has the same ones.
class SkippedRows {
 public:
  /// `rows`: rows of these sources. Throws std::invalid_argument for a row outside them, or if no row of
  /// one is left.
  SkippedRows(const std::set<std::int64_t>& rows, const std::vector<Interval>& sources);
  SkippedRows() = default;

  bool Contains(std::int64_t row) const { return substitutes_.contains(row); }
  /// Returns `row` if it is used, else the next used row of its source; the first row follows the last.
  std::int64_t Substitute(std::int64_t row) const {
    const auto found = substitutes_.find(row);
    return found == substitutes_.end() ? row : found->second;
  }
  std::int64_t count() const { return std::ssize(substitutes_); }
  /// Returns "3, 8, 12", with at most the first `most` rows.
  std::string Text(std::size_t most = 100) const;

 private:
  std::map<std::int64_t, std::int64_t> substitutes_;
};

}  // namespace troupe
