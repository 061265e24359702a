// Facts and results of a run, by which runs are compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/run_metrics.hpp"

namespace troupe {

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
