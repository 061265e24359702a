// What metrics.jsonl holds of a run, as series by step: what reports draw and comparisons state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// By step; values that are not finite, null in the file, are left out.
using MetricSeries = std::vector<std::pair<std::int64_t, double>>;

/// By key of the lines of training steps ("loss", "tokens_per_second", ...); those of evaluations
/// begin with "held_out_" ("held_out_loss").
using RunMetrics = std::map<std::string, MetricSeries>;

/// Of RUN/metrics.jsonl. Lines that are no JSON objects, as the end of a file that was cut off, are
/// skipped; without a file there is no series.
RunMetrics ReadMetrics(const std::string& run_directory);

/// {"loss": [[1, 5.5], ...], ...}
std::string SeriesJson(const RunMetrics& metrics);

/// A row for each step and evaluation, a column for each key; cells without a value are empty.
std::string SeriesCsv(const RunMetrics& metrics);

/// Null: the run has no such value.
const MetricSeries* FindSeries(const RunMetrics& metrics, const std::string& key);

/// What two runs have of one key at the last step that both have.
struct CommonValue {
  std::int64_t step = 0;
  double before = 0.0;
  double after = 0.0;

  friend bool operator==(const CommonValue&, const CommonValue&) = default;
};
/// Nothing: there is no such step.
std::optional<CommonValue> LastCommon(const RunMetrics& before, const RunMetrics& after,
                                      const std::string& key);

/// Of the steps after the first one, which allocates what later ones reuse; 0 without a value.
double MedianOf(const RunMetrics& metrics, const std::string& key);

}  // namespace troupe
