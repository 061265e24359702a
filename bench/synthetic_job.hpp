// A job of synthetic modules, run as `troupe train` runs one, round after round without overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/job_plan.hpp"
#include "configs/config.hpp"
#include "schedule/simulate.hpp"

namespace troupe::bench {

/// Modules (name, pp), one rank per stage, and the edges between them by name.
struct SyntheticGraph {
  std::string name;
  std::vector<std::pair<std::string, int>> modules;
  std::vector<std::pair<std::string, std::string>> edges;
};

/// Credits enough never to hold anybody back, no clipping.
Config ConfigOf(const SyntheticGraph& graph, double forward_ms, double backward_ms);

/// One round: from the Director's decision to begin it to its completion.
struct TimedRound {
  double seconds = 0.0;
  std::vector<std::vector<TimedPass>> stages;  ///< what ran, by stage of the graph, in order
};

/// Runs `rounds` + 1 rounds of `microbatches` and gives all but the first, in which programs are
/// made and memory is touched for the first time. Throws std::runtime_error with the cause when the
/// job fails.
std::vector<TimedRound> RunRounds(const Config& config, int rounds, std::int64_t microbatches);

}  // namespace troupe::bench
