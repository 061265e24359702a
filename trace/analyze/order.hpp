// What each stage ran in a step, beside what the stage rule would run if messages took no time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/schedule.hpp"
#include "trace/analyze/steps.hpp"
#include "trace/order.hpp"

namespace troupe {

/// What the rule decides by.
struct RuleInputs {
  StageGraph graph = StageGraph({}, {});
  Schedule schedule;  ///< the rules of all stages, and which of them share devices
};

/// The graph of the trace's stages and links, run as 1f1b. Credits are not in a trace: limits are
/// those of edges with as many credits as they can use. Throws std::invalid_argument for stages that
/// are not numbered within their modules, and LayoutError for links that make no graph.
RuleInputs RuleOf(const RunTrace& trace);

/// Of a forward, a backward or a weight pass.
PassKind PassKindOf(WorkKind kind);

struct ComparedOrder {
  PassOrder ran;
  std::string predicted;  ///< "F0 F1 B0 B1"
  /// Places in the order at which the two differ, from 0.
  std::vector<int> differences;
};

struct OrderComparison {
  std::vector<ComparedOrder> orders;  ///< by stage, replica and rank
  std::string not_predicted;          ///< why `predicted` is empty everywhere; empty: it is not
};

/// The prediction simulates the rule (schedule/simulate.hpp) with the mean durations of the round's
/// own passes, each replica of the pipeline with those of its own.
OrderComparison CompareOrders(const TraceIndex& index, std::int64_t round, const RuleInputs& rule);

/// Two lines for each stage (each device, where they differ), and marks below what differs.
std::string Format(const OrderComparison& comparison, const RunTrace& trace);

}  // namespace troupe
