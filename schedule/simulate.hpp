// The pipeline as the stage rule would run it if messages took no time, or as long as the links of
// the schedule say: a discrete-event simulation of schedule/stage_rule.hpp. Without times of links
// it gives the shortest time that any runtime with this rule can take, which is what benchmarks
// compare with and planners search by.
//
//   forward u ends   u arrives at every successor; at a sink its gradient is there at once
//   backward u ends  u's gradient comes back to every predecessor
//   weights u end    nobody else learns of it
//
// A stage that runs no backward gives no gradient to those after it, as in the runtime: the link
// is answered when their forward ends. Everything that ends at one instant has ended before any
// stage decides at that instant; of stages that decide at one instant the lower goes first, which
// matters only where they share a device without an order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/schedule.hpp"
#include "schedule/stage_rule.hpp"

namespace troupe {

/// How long `pass` takes on `stage`, in nanoseconds, 0 or more.
using PassDuration = std::function<std::int64_t(int stage, const Pass& pass)>;

/// The same durations on every stage, whatever the microbatch. `backward_ns` is that of the part
/// for the inputs where backwards are split; `weight_ns` that of the part for the weights.
PassDuration EqualDurations(std::int64_t forward_ns, std::int64_t backward_ns,
                            std::int64_t weight_ns = 0);

/// StageGraph::InFlightLimit of every stage.
std::vector<std::int64_t> LimitsOf(const StageGraph& graph);

struct TimedPass {
  Pass pass;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  friend bool operator==(const TimedPass&, const TimedPass&) = default;
};

/// A stage that still had passes to run when nothing ran any more.
struct BlockedStage {
  int stage = 0;
  Pass next;          ///< what it would run next
  std::string lacks;  ///< "its activation", "its gradient", "its turn", "room under its limit"
};

struct Simulation {
  std::int64_t makespan_ns = 0;                ///< from the start to the end of the last pass
  std::vector<std::vector<TimedPass>> stages;  ///< by stage of the graph, in the order they ran
  std::vector<BlockedStage> blocked;           ///< empty when every pass has run

  std::vector<Pass> OrderOf(int stage) const;
};

/// Most units that `stage` kept activations of at one time: from the start of their forward to the
/// end of their backward, or of their weights where backwards are split.
std::int64_t PeakInFlight(const Simulation& simulation, int stage);

/// One training round of `microbatches` through `graph`; sources have their inputs from the start.
/// A schedule that cannot finish ends with `blocked` stages. Throws std::invalid_argument: not one
/// rule (device, ...) per stage or time per link, a limit below 1, a negative count or duration.
Simulation Simulate(const StageGraph& graph, const Schedule& schedule, const PassDuration& duration,
                    std::int64_t microbatches);

/// 1f1b with `limits` by stage; every stage has its own device.
Simulation Simulate(const StageGraph& graph, const std::vector<std::int64_t>& limits,
                    const PassDuration& duration, std::int64_t microbatches);

}  // namespace troupe
