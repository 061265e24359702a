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
struct StageTime {
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t weight_ns = 0;
};

struct StageTimes {
  std::string source;  ///< where they are from, in words
  std::vector<StageTime> stages;

  PassDuration AsPassDuration(const Schedule& schedule) const;
  WorkTime AsWorkTime(const Schedule& schedule) const;
};

/// Synthetic modules: as stated. Others: from the number of multiplications, layers and sizes, at
/// 10 GFLOP/s per rank; good for proportions, not for seconds.
StageTimes TimesOf(const Candidate& candidate);

/// Medians of what RUN's trace holds, by the names of stages. Throws std::runtime_error: no trace,
/// or a stage of which nothing is in it.
StageTimes TimesFromRun(const Candidate& candidate, const std::string& run_directory);

/// Multiplies the times of modules: "vision=0.5". Throws LayoutError.
void Scale(StageTimes& times, const Candidate& candidate, const std::vector<std::string>& scales);

}  // namespace troupe
