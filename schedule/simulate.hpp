// The pipeline as the stage rule would run it if messages took no time: a discrete-event simulation
// of schedule/stage_rule.hpp. It gives the shortest time that any runtime with this rule can take,
// which is what benchmarks compare with and planners search by.
//
//   forward u ends   u has arrived at every successor; at a sink its gradient is there at once
//   backward u ends  u's gradient has come back to every predecessor
//
// Everything that ends at one instant has ended before any stage decides at that instant.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/stage_rule.hpp"

namespace troupe {

/// How long `pass` takes on `stage`, in nanoseconds, 0 or more.
using PassDuration = std::function<std::int64_t(int stage, const Pass& pass)>;

/// The same two durations on every stage, whatever the microbatch.
PassDuration EqualDurations(std::int64_t forward_ns, std::int64_t backward_ns);

/// StageGraph::InFlightLimit of every stage.
std::vector<std::int64_t> LimitsOf(const StageGraph& graph);

struct TimedPass {
  Pass pass;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  friend bool operator==(const TimedPass&, const TimedPass&) = default;
};

struct Simulation {
  std::int64_t makespan_ns = 0;                ///< from the start to the end of the last pass
  std::vector<std::vector<TimedPass>> stages;  ///< by stage of the graph, in the order they ran

  std::vector<Pass> OrderOf(int stage) const;
};

/// One training round of `microbatches` through `graph`; every stage has its own device, sources
/// have their inputs from the start. `limits` are the forwards that may await their backward, by
/// stage. Throws std::invalid_argument: not one limit of at least 1 per stage, a negative count or
/// duration.
Simulation Simulate(const StageGraph& graph, const std::vector<std::int64_t>& limits,
                    const PassDuration& duration, std::int64_t microbatches);

}  // namespace troupe
