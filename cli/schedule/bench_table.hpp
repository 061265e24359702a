// The table of `troupe bench schedules`: a row for each kind and number of microbatches, with its
// cost, simulated and run, and a verdict.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/schedule/stage_times.hpp"
#include "configs/report.hpp"
#include "plan/cost/job_cost.hpp"

namespace troupe {

/// A median with the interval that holds the true one in at least 95 of 100 cases.
struct Interval95 {
  struct Bounds {
    double low = 0.0;
    double high = 0.0;
  };
  double median = 0.0;
  std::optional<Bounds> bounds;  ///< nothing if there are too few samples
};
/// All n samples are on one side of the true median in 2 of 2^n cases: with fewer samples than this
/// in more than 5 of 100.
inline constexpr int kFewestForInterval = 6;
/// Uses the order of the samples only, so it holds for every distribution. With fewer than 9
/// samples the interval spans all of them. Throws std::invalid_argument if there are none.
Interval95 MedianOf(std::vector<double> samples);

/// "35.12 [34.90, 36.01]"; without the interval if there are too few samples.
std::string MedianText(const std::vector<double>& samples);

/// Whether the medians of two lists of samples differ.
enum class Difference {
  kClear,
  kNoise,   ///< their intervals overlap
  kUnknown  ///< there are too few samples for intervals
};
Difference DifferenceOf(const std::vector<double>& a, const std::vector<double>& b);

/// "35.12", "183"; "-" for 0.
std::string RateText(double per_second);

/// Idle share of a step by the textbook formula, for a chain of `devices` equally slow ones:
/// (p-1)/m of the work for 1f1b and gpipe, a third of it for zb-h1, divided by the chunks for
/// interleaved. Nothing for a schedule from a file.
std::optional<double> IdealBubble(const Candidate& candidate);

struct SimulatedRow {
  double step_ms = 0.0;
  double bubble = 0.0;                         ///< BubbleOf
  std::vector<std::int64_t> peak_activations;  ///< by stage
};
/// Throws LayoutError if the schedule cannot finish.
SimulatedRow SimulateRow(const Candidate& candidate, const StageTimes& times);

/// The cost as the actors measure it in virtual time.
struct VirtualRow {
  double step_ms = 0.0;  ///< of the last of `steps`
  std::uint64_t messages = 0;
  std::size_t actors = 0;
  double wall_seconds = 0.0;
};
/// Runs the job's stages and messages in virtual time, with small tensors; the work of stages,
/// inline encoders included, is only in `times`. Throws std::runtime_error with the cause if the
/// job fails.
VirtualRow RunVirtually(const Candidate& candidate, const StageTimes& times, std::int64_t steps);

/// One kind with one number of microbatches.
struct BenchEntry {
  Candidate candidate;
  SimulatedRow simulated;
  std::vector<double> step_ms = {};  ///< measured
  std::vector<double> bubbles = {};  ///< measured
  std::vector<double> errors = {};   ///< of simulations with each step's own durations
  std::optional<VirtualRow> virtually = {};

  double step() const { return step_ms.empty() ? simulated.step_ms : MedianOf(step_ms).median; }
  /// 0 if steps take no time, as with --scale M=0.
  double samples_per_second() const {
    return step() > 0.0 ? 1e3 * static_cast<double>(candidate.global_batch()) / step() : 0.0;
  }
  double bubble() const { return bubbles.empty() ? simulated.bubble : MedianOf(bubbles).median; }
};

/// "1 2 3" and `more` after the first `most` numbers.
std::string FirstOf(const std::vector<std::int64_t>& numbers, std::size_t most, const char* more);

/// "4.8% faster than 1f1b: the bubble is 3.2% instead of 8.1%". Measured steps whose intervals
/// overlap differ by noise; without intervals a difference may be noise.
std::string VerdictText(const BenchEntry& entry, const BenchEntry& baseline);

/// "measured, median of 7 with its 95% interval", or that there are too few for an interval.
std::string MeasuredTitle(int repetitions);

/// The table: one line per entry, compared with the first of its number of microbatches.
std::string TextOf(const std::vector<BenchEntry>& entries);

/// A line "global batches differ: 32 with 4 microbatches, 64 with 8: compare samples/s, not steps";
/// empty if they do not.
std::string BatchesText(const std::vector<BenchEntry>& entries);

/// All samples of an entry.
nlohmann::json JsonOf(const BenchEntry& entry);

/// A kind, or several for the same reason, that cannot run on this configuration.
struct Refusal {
  std::string kinds;  ///< "gpipe, interleaved:2"
  std::string why;    ///< one line
};
/// Adds `kind` to `refusals`. `what` may have several lines.
void AddRefusal(std::vector<Refusal>& refusals, const std::string& kind, const std::string& what);
/// Like the above, without overrides that the user did not type.
void AddRefusal(std::vector<Refusal>& refusals, const std::string& kind,
                const ConfigErrors& errors);
/// A line for each.
std::string TextOf(const std::vector<Refusal>& refusals);

}  // namespace troupe
