// The output of every benchmark: its conditions, a table, and the same as JSON with every
// sample. `--json FILE` and `--commit TEXT` are the only common arguments.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// Median and spread of samples of one kind.
struct Summary {
  double median = 0.0;
  double mad = 0.0;  ///< median absolute deviation from the median
  double min = 0.0;
  double max = 0.0;
};
/// Throws std::invalid_argument for an empty list.
Summary Summarize(std::vector<double> samples);

/// "12.34" with `decimals` decimals.
std::string Fixed(double value, int decimals);

/// One benchmark program's output. Rows appear as they are added.
class Report {
 public:
  /// Prints the conditions and the head of the table. Each column is as wide as its title, and at
  /// least 10. Throws std::invalid_argument for an argument it does not know.
  Report(int argc, char** argv, const std::string& name, std::vector<std::string> columns);

  /// Prints `cells` and adds `record` to the JSON file.
  void AddRow(const std::vector<std::string>& cells, nlohmann::json record);
  void AddLine(const std::string& line);
  /// Reports a wrong answer; the program then fails.
  void AddFault(const std::string& fault);

  /// Writes the file and returns the exit code of the program.
  int Finish();

 private:
  void PrintConditions();

  std::string json_path_;
  std::string commit_ = "unknown";
  std::vector<std::string> columns_;
  nlohmann::json result_;
  int num_faults_ = 0;
};

}  // namespace troupe::bench
