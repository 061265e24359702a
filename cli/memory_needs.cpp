#include "cli/memory_needs.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "modules/unit_samples.hpp"

namespace troupe {

std::vector<StageNeed> StageNeeds(const JobPlan& plan) {
  const Config& config = plan.config();
  std::vector<StageNeed> needs;
  for (const StagePlan& stage : plan.stages()) {
    const ModulePlan& module = plan.ModuleOf(stage.module);
    if (module.config->kind == ModuleKind::kSynthetic) continue;
    StageNeed need;
    need.stage = stage.stage;
    need.memory = EstimateMemory(config, module.config->name, stage.pp);
    // A colocated encoder keeps a whole window of microbatches, others those in flight.
    const std::int64_t kept =
        module.colocated_encoder ? WindowOf(config, config.schedule.microbatches) : stage.kept;
    need.activations = need.memory.activations * static_cast<std::size_t>(kept);
    for (int dp = 0; dp < module.grid.layout().dp; ++dp) {
      for (const int rank : plan.RanksOf(stage.stage, dp)) need.ranks.push_back(rank);
    }
    std::ranges::sort(need.ranks);
    needs.push_back(std::move(need));
  }
  return needs;
}

std::map<int, std::size_t> RankNeeds(const std::vector<StageNeed>& stages) {
  std::map<int, std::size_t> needs;
  for (const StageNeed& stage : stages) {
    for (const int rank : stage.ranks) needs[rank] += stage.per_rank();
  }
  return needs;
}

}  // namespace troupe
