// The console lines of a run: one per step, or a bar on a terminal, and its totals over all its
// starts, the sum of the lines of its metrics.jsonl.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "actors/job_course.hpp"
#include "configs/config.hpp"
#include "modules/batch_order.hpp"
#include "modules/memory_meter.hpp"

namespace troupe {

/// The numbers of one step that follow from its result, for the console and metrics.jsonl.
struct StepMetrics {
  double learning_rate = 0.0;
  double tokens_per_second = 0.0;
  double samples_per_second = 0.0;
  double bubble = 0.0;                 ///< share of the ranks' time in which they were idle
  std::int64_t memory_bytes = 0;       ///< resident, of this process
  std::string delaying_source;         ///< path of RoundResult::data's
  std::optional<StepBalance> balance;  ///< with data.order = "balanced"
  std::optional<MemoryUse> gpu;        ///< backend "cuda": of the fullest GPU of this process
};

/// Returns the numbers of a completed training round. `memory` is the meter of the backend.
StepMetrics MetricsOf(const RoundResult& result, const Config& config, int num_ranks,
                      MemoryMeter& memory);

/// "950", "19.3k", "1.25M"; one decimal below 100.
std::string FormatRate(double per_second);

/// "1h02m", "3m20s", "12s", "0.4s".
std::string FormatDuration(double seconds);

class Progress {
 public:
  /// `terminal`: standard output is a terminal, so a bar is redrawn in place.
  Progress(std::int64_t steps, bool terminal) : steps_(steps), terminal_(terminal) {}

  void ShowStep(const RoundResult& result, const StepMetrics& metrics);
  /// Prints a line above the bar.
  void ShowLine(const std::string& line);
  /// Ends the bar's line.
  void Finish();

 private:
  std::string EtaOf(std::int64_t step);

  std::int64_t steps_;
  bool terminal_;
  bool bar_open_ = false;
  std::deque<double> recent_seconds_;  ///< of the latest steps
};

struct RunHistory {
  std::int64_t steps = 0;  ///< trained
  double seconds = 0.0;    ///< of those steps
  double tokens = 0.0;     ///< read by those steps; 0: not known
  double samples = 0.0;    ///< likewise
  std::int64_t skipped_samples = 0;
  std::int64_t replaced_items = 0;  ///< as often as they were read
  std::set<ReplacedItem> replaced;  ///< without repeats

  /// Adds a line of metrics.jsonl. Ignores a malformed line, such as the end of a truncated file.
  void Add(const std::string& line);

 private:
  void AddLine(const nlohmann::json& line);
};

/// Returns an entry of `replaced_files` in a line of metrics.jsonl.
nlohmann::ordered_json ReplacedJson(const ReplacedItem& item);
/// Returns the item that RunHistory reads from that entry: bytes that are not UTF-8 differ.
ReplacedItem AsWritten(const ReplacedItem& item);

/// Returns a line about a run of `steps` steps that has ended: steps done, time and speed; and one about
/// samples that could not be used.
std::string SummaryOf(const RunHistory& run, std::int64_t steps);

}  // namespace troupe
