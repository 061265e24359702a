// The table of `troupe bench layouts --measure`: a row for each layout, with what it took next to what was
// predicted, and a verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/job_plan.hpp"
#include "plan/search/planner.hpp"

namespace troupe {

/// A layout that was run, or is to be.
struct LayoutEntry {
  std::size_t number = 0;  ///< of its plan; 0: the configuration as it stands
  Plan plan;
  std::shared_ptr<const JobPlan> job = nullptr;  ///< to run it
  std::size_t estimated_bytes = 0;               ///< of the same
  std::vector<double> step_ms = {};              ///< measured
  std::int64_t memory_bytes = 0;                 ///< measured, TimedRound; 0: unknown
  std::string failure = {};                      ///< one line; empty: it ran
};

/// "2", or "now" for the configuration as it stands.
std::string NumberOf(const LayoutEntry& entry);

/// Returns a line for each layout. One that failed has "-" for what was not measured.
std::string MeasuredTableOf(const std::vector<LayoutEntry>& entries);

/// "plan 2 was fastest: 12.3% less time than now; the prediction had the same order". Layouts whose intervals
/// overlap have no order. Empty if fewer than two ran.
std::string VerdictOf(const std::vector<LayoutEntry>& entries);

/// Returns a line for each layout that failed.
std::string FailuresText(const std::vector<LayoutEntry>& entries);

/// Returns whether no layout that was predicted to be faster than another one took clearly longer.
bool InPredictedOrder(const std::vector<LayoutEntry>& entries);

/// Returns all samples of an entry, and how it differs from `config`.
nlohmann::json JsonOf(const LayoutEntry& entry, const Config& config);

}  // namespace troupe
