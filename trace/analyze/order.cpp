#include "trace/analyze/order.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "layout/at.hpp"

namespace troupe {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

struct Mean {
  std::int64_t total_ns = 0;
  std::int64_t count = 0;
  std::int64_t ns() const { return count == 0 ? 0 : total_ns / count; }
};

/// The passes that one replica of the pipeline ran in the round.
struct Measured {
  std::map<std::pair<int, PassKind>, Mean> durations;  ///< by stage
  std::int64_t Of(int stage, PassKind kind) const {
    const auto found = durations.find({stage, kind});
    return found == durations.end() ? 0 : found->second.ns();
  }
};

/// The reason why the round cannot be simulated; empty: it can.
std::string CannotPredict(const TraceIndex& index, std::int64_t round, const RuleInputs& rule) {
  std::map<int, int> stage_of_rank;
  std::map<std::pair<int, int>, std::set<std::int64_t>> units;
  for (const int w : index.WorkIn(round)) {
    const PassRecord& pass = index.work(w).pass;
    if (!IsPass(pass.kind)) continue;
    units[{pass.stage, pass.dp}].insert(pass.unit);
    const auto [at, fresh] = stage_of_rank.try_emplace(pass.rank, pass.stage);
    // Virtual stages of one module share ranks by design.
    if (!fresh && at->second != pass.stage &&
        (rule.schedule.devices.empty() ||
         index.ModuleOf(at->second) != index.ModuleOf(pass.stage))) {
      return index.StageName(at->second) + " and " + index.StageName(pass.stage) +
             " share ranks, and the rule is simulated with a device for each";
    }
  }
  for (const auto& [place, seen] : units) {
    if (place.first < 0 || At(place.first) >= rule.graph.stages().size()) {
      return index.StageName(place.first) + " is not in the graph";
    }
    if (seen.size() != units.begin()->second.size()) {
      return index.StageName(units.begin()->first.first) + " ran " +
             std::to_string(units.begin()->second.size()) + " units and " +
             index.StageName(place.first) + " " + std::to_string(seen.size());
    }
  }
  return units.empty() ? "no pass of it is in the trace" : "";
}

std::vector<int> Differences(const std::string& a, const std::string& b) {
  const std::vector<std::string> ran = Words(a);
  const std::vector<std::string> predicted = Words(b);
  std::vector<int> places;
  for (std::size_t i = 0; i < std::max(ran.size(), predicted.size()); ++i) {
    if (i >= ran.size() || i >= predicted.size() || ran[i] != predicted[i]) {
      places.push_back(static_cast<int>(i));
    }
  }
  return places;
}

}  // namespace

PassKind PassKindOf(WorkKind kind) {
  return kind == WorkKind::kForward    ? PassKind::kForward
         : kind == WorkKind::kBackward ? PassKind::kBackward
                                       : PassKind::kWeight;
}

std::string OrderLike(const PassOrder& ran, const Simulation& simulation) {
  std::vector<Pass> order = simulation.OrderOf(ran.stage);
  for (const char letter : {'B', 'W'}) {
    if (ran.text.find(letter) != std::string::npos) continue;
    std::erase_if(order, [&](const Pass& pass) { return ToString(pass).front() == letter; });
  }
  return ToString(order);
}

RuleInputs RuleOf(const RunTrace& trace) {
  std::vector<ModuleNode> modules;
  std::vector<int> module_of;
  for (const StageId& stage : trace.stages) {
    if (stage.number == 0) modules.push_back({stage.module, 0});
    if (stage.module.empty() || modules.empty() || modules.back().name != stage.module ||
        modules.back().pp != stage.number) {
      throw std::invalid_argument("stage " + ToString(stage) +
                                  " of the trace does not follow the one before it in its module");
    }
    ++modules.back().pp;
    module_of.push_back(static_cast<int>(modules.size()) - 1);
  }
  std::vector<ModuleEdge> edges;
  for (const TraceLink& link : trace.links) {
    if (!link.boundary) continue;
    edges.push_back({module_of.at(At(link.from)), module_of.at(At(link.to)),
                     static_cast<int>(trace.stages.size()) + 1});
  }
  RuleInputs rule{StageGraph(std::move(modules), std::move(edges)), {}};
  rule.schedule = OneForwardOneBackward(LimitsOf(rule.graph));
  return rule;
}

OrderComparison CompareOrders(const TraceIndex& index, std::int64_t round, const RuleInputs& rule) {
  OrderComparison result;
  std::vector<PassRecord> records;
  std::map<int, Measured> measured;  // by replica
  std::set<std::int64_t> units;
  int first_stage = -1;
  for (const int w : index.WorkIn(round)) {
    const PassRecord& pass = index.work(w).pass;
    if (!IsPass(pass.kind)) continue;
    records.push_back(pass);
    Mean& mean = measured[pass.dp].durations[{pass.stage, PassKindOf(pass.kind)}];
    mean.total_ns += pass.end_ns - pass.begin_ns;
    ++mean.count;
    if (first_stage < 0) first_stage = pass.stage;
    if (pass.stage == first_stage) units.insert(pass.unit);
  }
  for (PassOrder& order : PassOrders(records, round)) result.orders.push_back({order, "", {}});
  result.not_predicted = CannotPredict(index, round, rule);
  if (!result.not_predicted.empty()) return result;
  std::map<int, Simulation> simulations;
  for (ComparedOrder& order : result.orders) {
    // If another stage has fewer replicas (another dp), use its replica with the nearest number.
    const Measured& own = measured.at(order.ran.dp);
    const auto takes = [&](int stage, const Pass& pass) {
      if (own.durations.count({stage, pass.kind}) > 0) return own.Of(stage, pass.kind);
      std::int64_t ns = 0;
      for (const auto& [dp, other] : measured) ns = std::max(ns, other.Of(stage, pass.kind));
      return ns;
    };
    if (simulations.count(order.ran.dp) == 0) {
      simulations[order.ran.dp] =
          Simulate(rule.graph, rule.schedule, takes, static_cast<std::int64_t>(units.size()));
    }
    order.predicted = OrderLike(order.ran, simulations[order.ran.dp]);
    order.differences = Differences(order.ran.text, order.predicted);
  }
  return result;
}

}  // namespace troupe
