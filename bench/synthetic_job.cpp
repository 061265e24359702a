#include "bench/synthetic_job.hpp"

#include <sys/prctl.h>

#include "kinds/synthetic.hpp"

namespace troupe::bench {

Config ConfigOf(const SyntheticGraph& graph, double forward_ms, double backward_ms) {
  Config config;
  int rank = 0;
  for (const auto& [name, pp] : graph.modules) {
    ModuleConfig module;
    module.name = name;
    module.layout.pp = pp;
    SyntheticConfig times;
    times.forward_ms = forward_ms;
    times.backward_ms = backward_ms;
    module.model = times;
    for (int stage = 0; stage < pp; ++stage) module.ranks.push_back(rank++);
    config.modules.push_back(module);
  }
  config.cluster.ranks = rank;
  for (const auto& [from, to] : graph.edges) {
    EdgeConfig edge;
    edge.from = from;
    edge.to = to;
    edge.credits = rank + 1;
    config.edges.push_back(edge);
  }
  config.optimizer.clip_norm = 0.0;
  return config;
}

std::vector<TimedRound> RunRounds(const Config& config, int rounds, std::int64_t microbatches) {
  // The kernel may end a sleep 50 us late to save wake-ups; the benchmark must not measure that.
  // New threads inherit the setting.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  return RunTimedRounds(std::make_shared<const JobPlan>(config), rounds, microbatches);
}

}  // namespace troupe::bench
