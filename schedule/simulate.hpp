// A discrete-event simulation of the stage rule (schedule/stage_rule.hpp). Messages take no time,
// or the schedule's time for each link. Without link times the result is the shortest time of any
// runtime with this rule: the baseline of benchmarks, and the objective of planners. It takes
// microseconds, so that a job plan can ask it; actors/virtual_time.hpp runs the actors themselves,
// to compare them with the rule.
//
//   forward u ends   u arrives at every successor; at a sink its gradient is ready at once
//   backward u ends  u's gradient returns to every predecessor
//   weights u end    no effect on other stages
//
// Units of stages may have different numbers of microbatches. A unit has arrived when all its
// microbatches have. If a pass runs on several devices, each begins it when its turn has come, and the
// pass ends when all have run it.
//
// A link to a stage that runs no backward carries no gradient: it is answered when the forward of
// the receiver ends, as in the runtime. All events of one instant happen before any stage decides
// at that instant. Of stages that decide at one instant the lower decides first, which matters only
// if they share a device without an order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/schedule.hpp"
#include "schedule/stage_rule.hpp"

namespace troupe {

/// The duration of `pass` on `stage` in nanoseconds, 0 or more.
using PassDuration = std::function<std::int64_t(int stage, const Pass& pass)>;

/// The same durations for every stage and microbatch. With split backwards, `backward_ns` is the
/// duration of the part for the inputs, `weight_ns` of the part for the weights.
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

/// A stage with passes left at a deadlock.
struct BlockedStage {
  int stage = 0;
  Pass next;          ///< its next pass
  std::string lacks;  ///< "its activation", "its gradient", "its turn", "room under its limit"
};

struct Simulation {
  std::int64_t makespan_ns = 0;                ///< from the start to the end of the last pass
  std::vector<std::vector<TimedPass>> stages;  ///< by stage of the graph, in order of execution
  std::vector<BlockedStage> blocked;           ///< empty if every pass has run

  std::vector<Pass> OrderOf(int stage) const;
};

/// Returns why the passes of a simulation did not all run: "language.s0 cannot run F1, missing its
/// turn"; "" if they did.
std::string WhyBlocked(const StageGraph& graph, const Simulation& simulation);

/// The largest number of units whose activations `stage` keeps at one time: from the start of their
/// forward to the end of their backward, or of their weights if backwards are split.
std::int64_t PeakInFlight(const Simulation& simulation, int stage);

/// Simulates one training round of `microbatches` through `graph`; sources have their inputs from
/// the start. A schedule that cannot finish ends with `blocked` stages. Throws
/// std::invalid_argument: a wrong number of rules, devices or link times, a limit below 1, a
/// negative count or duration.
Simulation Simulate(const StageGraph& graph, const Schedule& schedule, const PassDuration& duration,
                    std::int64_t microbatches);

}  // namespace troupe
