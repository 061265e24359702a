// Decides from the faults of a job's lists whether it may start, and which rows it does without.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/data_error.hpp"

namespace troupe {

/// What happens with rows that cannot be used.
struct FaultPolicy {
  bool skip = false;              ///< else a fault keeps the job from starting
  std::int64_t skip_limit = 100;  ///< rows of all lists that may be skipped
};

/// Keeps the first few faults and counts the others; its size does not grow with their number.
class FaultTally {
 public:
  explicit FaultTally(FaultPolicy policy) : policy_(policy) {}

  /// Takes the faults of the list `file`.
  std::function<void(const DataFault&)> For(const std::string& file);
  /// Throws DataError where the job may not start: there is a fault and none may be skipped, a
  /// list could not be read to its end, or more rows than `skip_limit` have a fault.
  void Require() const;

  /// The rows of `file` that have a fault.
  const std::set<std::int64_t>& RowsOf(const std::string& file) { return rows_[file]; }
  /// As LlavaSource::skipped_lines.
  std::vector<std::string> SkippedLines() const;

 private:
  void Add(const std::string& file, const DataFault& fault);
  std::int64_t num_rows() const;
  /// The lines that are kept, and how many there are besides.
  std::vector<std::string> Shown() const;

  FaultPolicy policy_;
  std::int64_t count_ = 0;
  std::vector<std::string> first_;
  bool unreadable_ = false;                             ///< a list has rows that are not known
  std::map<std::string, std::set<std::int64_t>> rows_;  ///< by list; no more than can be skipped
};

}  // namespace troupe
