#include "schedule/simulate.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {
namespace {

std::size_t Index(int i) { return static_cast<std::size_t>(i); }

/// A pass that is running, and when it ends.
struct Ending {
  std::int64_t at_ns = 0;
  int stage = 0;
  Pass pass;
};

struct Later {
  bool operator()(const Ending& a, const Ending& b) const { return a.at_ns > b.at_ns; }
};

class Simulator {
 public:
  Simulator(const StageGraph& graph, const std::vector<std::int64_t>& limits,
            const PassDuration& duration, std::int64_t microbatches)
      : graph_(graph),
        limits_(limits),
        duration_(duration),
        counters_(graph.stages().size()),
        arrived_(graph.links().size()),
        answered_(graph.links().size()) {
    result_.stages.resize(counters_.size());
    for (std::size_t stage = 0; stage < counters_.size(); ++stage) {
      counters_[stage].horizon = microbatches;
      if (graph.stages()[stage].in.empty()) counters_[stage].activations = microbatches;
    }
  }

  Simulation Run() {
    StartAll(0);
    while (!running_.empty()) {
      const std::int64_t now_ns = running_.top().at_ns;
      while (!running_.empty() && running_.top().at_ns == now_ns) {
        const Ending ending = running_.top();
        running_.pop();
        Finish(ending.stage, ending.pass);
      }
      result_.makespan_ns = now_ns;
      StartAll(now_ns);
    }
    return std::move(result_);
  }

 private:
  void StartAll(std::int64_t now_ns) {
    for (int stage = 0; Index(stage) < counters_.size(); ++stage) {
      StageCounters& c = counters_[Index(stage)];
      const auto pass = NextPass(c, limits_[Index(stage)]);
      if (!pass) continue;
      c.busy = true;
      ++(pass->kind == PassKind::kForward ? c.forwards : c.backwards);
      const std::int64_t takes_ns = duration_(stage, *pass);
      if (takes_ns < 0) {
        throw std::invalid_argument("simulation: " + ToString(*pass) + " of " +
                                    graph_.StageName(stage) + " takes " + std::to_string(takes_ns) +
                                    " ns");
      }
      result_.stages[Index(stage)].push_back({*pass, now_ns, now_ns + takes_ns});
      running_.push({now_ns + takes_ns, stage, *pass});
    }
  }

  /// The smallest of `counts` over `links`.
  static std::int64_t Least(const std::vector<int>& links,
                            const std::vector<std::int64_t>& counts) {
    std::int64_t least = counts[Index(links.front())];
    for (const int link : links) least = std::min(least, counts[Index(link)]);
    return least;
  }

  void Finish(int stage, const Pass& pass) {
    const StageNode& node = graph_.stages()[Index(stage)];
    counters_[Index(stage)].busy = false;
    if (pass.kind == PassKind::kForward) {
      if (node.out.empty()) ++counters_[Index(stage)].gradients;
      for (const int link : node.out) {
        ++arrived_[Index(link)];
        const int next = graph_.links()[Index(link)].to;
        counters_[Index(next)].activations = Least(graph_.stages()[Index(next)].in, arrived_);
      }
    } else {
      for (const int link : node.in) {
        ++answered_[Index(link)];
        const int before = graph_.links()[Index(link)].from;
        counters_[Index(before)].gradients = Least(graph_.stages()[Index(before)].out, answered_);
      }
    }
  }

  const StageGraph& graph_;
  const std::vector<std::int64_t>& limits_;
  const PassDuration& duration_;
  std::vector<StageCounters> counters_;
  std::vector<std::int64_t> arrived_;   ///< by link: activations that came over it
  std::vector<std::int64_t> answered_;  ///< by link: gradients that came back over it
  std::priority_queue<Ending, std::vector<Ending>, Later> running_;
  Simulation result_;
};

}  // namespace

PassDuration EqualDurations(std::int64_t forward_ns, std::int64_t backward_ns) {
  return [=](int, const Pass& pass) {
    return pass.kind == PassKind::kForward ? forward_ns : backward_ns;
  };
}

std::vector<std::int64_t> LimitsOf(const StageGraph& graph) {
  std::vector<std::int64_t> limits;
  for (int stage = 0; Index(stage) < graph.stages().size(); ++stage) {
    limits.push_back(graph.InFlightLimit(stage));
  }
  return limits;
}

std::vector<Pass> Simulation::OrderOf(int stage) const {
  std::vector<Pass> order;
  for (const TimedPass& timed : stages.at(Index(stage))) order.push_back(timed.pass);
  return order;
}

Simulation Simulate(const StageGraph& graph, const std::vector<std::int64_t>& limits,
                    const PassDuration& duration, std::int64_t microbatches) {
  if (limits.size() != graph.stages().size()) {
    throw std::invalid_argument("simulation: expected " + std::to_string(graph.stages().size()) +
                                " limits, got " + std::to_string(limits.size()));
  }
  for (const std::int64_t limit : limits) {
    if (limit < 1) {
      throw std::invalid_argument("simulation: a limit is " + std::to_string(limit) +
                                  ", expected at least 1");
    }
  }
  if (microbatches < 0) {
    throw std::invalid_argument("simulation: " + std::to_string(microbatches) + " microbatches");
  }
  return Simulator(graph, limits, duration, microbatches).Run();
}

}  // namespace troupe
