// Durations of the passes of every stage: stated, measured, or estimated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/work_time.hpp"
#include "cli/schedule/candidate.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

/// Times in ns. A split backward takes `backward - weight`, its weights `weight`.
struct StagePassTimes {
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t weight_ns = 0;
};

struct StageTimes {
  std::string source;  ///< of the durations, for the title
  std::vector<StagePassTimes> stages;
  std::vector<std::int64_t> link_ns = {};  ///< by link of the graph; empty: messages take no time
};

/// Simulates one step with these times.
Simulation Simulate(const Candidate& candidate, const StageTimes& times);

/// The times of the passes of `schedule`, for actors in virtual time.
WorkTime WorkTimeOf(const StageTimes& times, const Schedule& schedule);

/// Returns stated durations for synthetic modules, and estimates for others: the multiplications of
/// all modules on the stage, inline encoders included, and of the gradients that its backward
/// computes, at 10 GFLOP/s per rank. Good for proportions, not for seconds.
StageTimes TimesOf(const Candidate& candidate);

/// Returns the times for the options of a verb, scaled: medians of the passes in the trace of
/// `run_directory`, by stage, and times of links (LinkTime); those of TimesOf if it is empty.
/// Throws LaunchError without a directory, std::runtime_error without a trace, LayoutError for a run
/// of another model (WhyOtherTimes) or a stage without training passes, and as Scale and LoadConfig.
StageTimes TimesFor(const Candidate& candidate, const std::string& run_directory,
                    const std::vector<std::string>& scales);

/// Changes the times of edges: "edge:vision->language=2x", "=300us", "=1.5ms". Throws LayoutError.
void ChangeEdges(StageTimes& times, const Candidate& candidate,
                 const std::vector<std::string>& changes);

/// Multiplies the times of modules: "vision=0.5". Throws LayoutError.
void Scale(StageTimes& times, const Candidate& candidate, const std::vector<std::string>& scales);

}  // namespace troupe
