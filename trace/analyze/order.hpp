// Compares the passes that each stage ran in a step with those that the stage rule would run if
// messages took no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/schedule.hpp"
#include "schedule/simulate.hpp"
#include "trace/analyze/steps.hpp"
#include "trace/order.hpp"

namespace troupe {

/// The inputs of the rule.
struct RuleInputs {
  StageGraph graph = StageGraph({}, {});
  Schedule schedule;  ///< the rules of all stages, and the stages that share devices
};

/// The graph of the trace's stages and links, run as 1f1b. A trace does not hold credits, so every
/// edge gets as many as it can use. Throws std::invalid_argument for stages that
/// are not numbered within their modules, and LayoutError for links that do not form a graph.
RuleInputs RuleOf(const RunTrace& trace);

/// `kind` is a forward, a backward or a weight pass.
PassKind PassKindOf(WorkKind kind);

/// The simulated order of the stage of `ran`, without the backwards or weight passes that `ran` does
/// not have, because nothing in the stage trains.
std::string OrderLike(const PassOrder& ran, const Simulation& simulation);

struct ComparedOrder {
  PassOrder ran;
  std::string predicted;  ///< "F0 F1 B0 B1"
  /// Positions at which the two orders differ, from 0.
  std::vector<int> differences;
};

struct OrderComparison {
  std::vector<ComparedOrder> orders;  ///< by stage, replica and rank
  std::string not_predicted;          ///< the reason if there is no prediction; else empty
};

/// The prediction simulates the rule (schedule/simulate.hpp) with the mean durations of the round's
/// passes, separately for each replica of the pipeline.
OrderComparison CompareOrders(const TraceIndex& index, std::int64_t round, const RuleInputs& rule);

/// Two lines for each stage (for each device if they differ), with marks below the differences.
std::string Format(const OrderComparison& comparison, const RunTrace& trace);

}  // namespace troupe
