// The values of metrics.jsonl as series by step, for reports and comparisons.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Values by step. Values that are not finite, null in the file, are omitted.
using MetricSeries = std::vector<std::pair<std::int64_t, double>>;

/// Series by key ("loss", "tokens_per_second", ...). Keys of evaluations have the prefix
/// "held_out_" ("held_out_loss").
using RunMetrics = std::map<std::string, MetricSeries>;

/// Reads RUN/metrics.jsonl. Skips lines that are not JSON objects, such as the end of a truncated
/// file. Returns no series if there is no file.
RunMetrics ReadMetrics(const std::string& run_directory);

/// {"loss": [[1, 5.5], ...], ...}
std::string SeriesJson(const RunMetrics& metrics);

/// A row for each step and evaluation, a column for each key; cells without a value are empty.
std::string SeriesCsv(const RunMetrics& metrics);

/// Returns null if the run has no such series.
const MetricSeries* FindSeries(const RunMetrics& metrics, const std::string& key);

/// The values of one key in two runs, at the last step that both have.
struct CommonValue {
  std::int64_t step = 0;
  double before = 0.0;
  double after = 0.0;

  friend bool operator==(const CommonValue&, const CommonValue&) = default;
};
/// Returns nothing if there is no such step.
std::optional<CommonValue> LastCommon(const RunMetrics& before, const RunMetrics& after,
                                      const std::string& key);

/// The median over the steps after the first, which allocates memory; 0 without a value.
double MedianOf(const RunMetrics& metrics, const std::string& key);

}  // namespace troupe
