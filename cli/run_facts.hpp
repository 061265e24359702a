// What a run was and what it achieved, in values that runs are compared by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/run_metrics.hpp"

namespace troupe {

/// Speed and loss of a run; 0 where the run has no such value.
struct RunRates {
  int ranks = 0;
  double tokens_per_second = 0.0;  ///< median over steps, as all rates
  double samples_per_second = 0.0;
};
RunRates RatesOf(const std::string& run_directory, const RunMetrics& metrics);

/// "global batch" -> "32", "layout of vision" -> "dp4 on ranks 4-7", "held-out loss" -> "0.0880".
std::map<std::string, std::string> FactsOf(const std::string& run_directory,
                                           const RunMetrics& metrics);

/// A key that two runs have different values for; empty: the run does not set it.
struct KeyDifference {
  std::string key;  ///< "modules.vision.layout.dp"
  std::string before;
  std::string after;
};

/// By the resolved.toml of both, in the order of its keys; without names and directories of runs.
/// Throws std::invalid_argument for a file that cannot be read.
std::vector<KeyDifference> DifferencesOf(const std::string& before, const std::string& after);

}  // namespace troupe
