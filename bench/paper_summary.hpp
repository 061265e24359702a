// How far predictions are from what the paper prints.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/paper_rules.hpp"

namespace troupe::bench {

/// A job and its prediction.
struct Predicted {
  std::string id;
  Mode mode = Mode::kHomogeneous;
  double ms = 0.0;
  double gb = 0.0;
  std::optional<double> measured_ms = {};
  std::optional<double> measured_gb = {};
};

/// Writes by mode the median and the worst error of step times, of gains over H and of memory, each with
/// the errors of the rows; then the winner of each workload.
void WriteSummary(const std::vector<Predicted>& rows, const std::vector<ContestResult>& contests,
                  std::ostream& out);

}  // namespace troupe::bench
