// Runs a job of synthetic modules like `troupe train`, round after round without overlap.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/schedule/timed_rounds.hpp"
#include "configs/config.hpp"

namespace troupe::bench {

/// Modules (name, pp), one rank per stage, and the edges between them by name.
struct SyntheticGraph {
  std::string name;
  std::vector<std::pair<std::string, int>> modules;
  std::vector<std::pair<std::string, std::string>> edges;
};

/// Enough credits never to block, no clipping.
Config ConfigOf(const SyntheticGraph& graph, double forward_ms, double backward_ms);

/// Like RunTimedRounds, but sleeps end on time. Each stage has one rank, so its passes are in
/// order.
std::vector<TimedRound> RunRounds(const Config& config, int rounds, std::int64_t microbatches);

}  // namespace troupe::bench
