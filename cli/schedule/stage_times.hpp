// How long the passes of every stage take: stated, measured, or estimated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/device_actor.hpp"
#include "cli/schedule/candidate.hpp"
#include "schedule/simulate.hpp"

namespace troupe {

/// In ns. A backward that is split takes `backward - weight`, its weights `weight`.
struct StagePassTimes {
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t weight_ns = 0;
};

struct StageTimes {
  std::string source;  ///< where they are from, in words
  std::vector<StagePassTimes> stages;
  std::vector<std::int64_t> link_ns = {};  ///< by link of the graph; empty: messages take no time

  /// The schedule with links that take their time.
  Schedule WithLinks(Schedule schedule) const;
  PassDuration AsPassDuration(const Schedule& schedule) const;
  WorkTime AsWorkTime(const Schedule& schedule) const;
};

/// Synthetic modules: as stated. Others: from the number of multiplications at 10 GFLOP/s per rank, of
/// everything that runs on the stage, inline encoders included, and in backwards of what they compute
/// gradients for (StageFlops). Good for proportions, not for seconds.
StageTimes TimesOf(const Candidate& candidate);

/// Medians of what RUN's trace holds, by stage; times of links as LinkTime has them.
/// Throws LaunchError: no directory; std::runtime_error: no trace; LayoutError: a run of another
/// model (WhyOtherTimes), a stage without training passes in it; and what LoadConfig throws.
StageTimes TimesFromRun(const Candidate& candidate, const std::string& run_directory);

/// As the options of a verb say: of `run_directory`, those of TimesOf if it is empty; then scaled.
/// Throws what TimesFromRun and Scale do.
StageTimes TimesFor(const Candidate& candidate, const std::string& run_directory,
                    const std::vector<std::string>& scales);

/// Changes the times of edges: "edge:vision->language=2x", "=300us", "=1.5ms". Throws LayoutError.
void ChangeEdges(StageTimes& times, const Candidate& candidate,
                 const std::vector<std::string>& changes);

/// Multiplies the times of modules: "vision=0.5". Throws LayoutError.
void Scale(StageTimes& times, const Candidate& candidate, const std::vector<std::string>& scales);

}  // namespace troupe
