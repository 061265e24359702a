// Facts and results of a run, by which runs are reported and compared: the values of metrics.jsonl
// as series by step, and its configuration.
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
/// file. Without the file there are no series.
RunMetrics ReadMetrics(const std::string& run_directory);

/// {"loss": [[1, 5.5], ...], ...}
std::string SeriesJson(const RunMetrics& metrics);

/// A row for each step and evaluation, a column for each key; cells without a value are empty.
std::string SeriesCsv(const RunMetrics& metrics);

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

/// Speed of a run; 0 if the run has no such value.
struct RunRates {
  int ranks = 0;
  double tokens_per_second = 0.0;  ///< median over steps, as all rates
  double samples_per_second = 0.0;
};
RunRates RatesOf(const std::string& run_directory, const RunMetrics& metrics);

/// "global batch" -> "32", "layout of vision" -> "dp4 on ranks 4-7", "held-out loss" -> "0.0880".
std::map<std::string, std::string> FactsOf(const std::string& run_directory,
                                           const RunMetrics& metrics);

/// A key whose values differ between two runs; empty: the run does not set it.
struct KeyDifference {
  std::string key;  ///< "modules.vision.layout.dp"
  std::string before;
  std::string after;
};

/// Compares the resolved.toml of both runs, in the order of its keys, without names and directories
/// of runs. Throws std::invalid_argument if one cannot be read.
std::vector<KeyDifference> DifferencesOf(const std::string& before, const std::string& after);

}  // namespace troupe
