// The table of `troupe bench schedules`: a row for each kind and number of microbatches, with a
// verdict.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/schedule/compare.hpp"
#include "configs/report.hpp"

namespace troupe {

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
std::string Verdict(const BenchEntry& entry, const BenchEntry& baseline);

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
