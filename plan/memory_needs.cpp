#include "plan/memory_needs.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plan/unit_samples.hpp"

namespace troupe {

/// Returns the most microbatches of a stage that may still be in flight when the state that its
/// module's encoders offloaded comes back.
static std::int64_t RestoreAhead(const JobPlan& plan, int module) {
  std::int64_t ahead = 0;
  for (const EdgePlan& edge : plan.edges()) {
    if (edge.to != module || plan.OffloadsOf(edge.from).empty()) continue;
    ahead = std::max(ahead, plan.RestoreAheadOf(edge));
  }
  return ahead;
}

/// Scales `activations` from one microbatch to the whole window that a colocated encoder keeps. A
/// replica may have fewer samples of a window than the most of a microbatch times its microbatches.
static std::size_t WindowActivations(const Config& config, const ModuleConfig& module,
                                     std::size_t activations) {
  const auto one = static_cast<std::size_t>(MostSamplesOfUnit(config, module, 1));
  const auto most =
      static_cast<std::size_t>(MostSamplesOfUnit(config, module, config.schedule.microbatches));
  return one == 0 ? 0 : activations / one * most;
}

std::vector<StageNeed> StageNeeds(const JobPlan& plan, AttentionKeeps attention) {
  const Config& config = plan.config();
  std::vector<StageNeed> needs;
  for (const StagePlan& stage : plan.stages()) {
    const ModulePlan& module = plan.ModuleOf(stage.module);
    if (!module.config->model->computes()) continue;
    StageNeed need;
    need.stage = stage.stage;
    need.memory = EstimateMemory(config, module.config->name, stage.pp, attention);
    if (OffloadOf(config, *module.config) == Offload::kNone) need.memory.offloaded = 0;
    if (module.colocated_encoder) {
      need.activations = WindowActivations(config, *module.config, need.memory.activations);
    } else {
      const std::int64_t kept = stage.kept;
      need.activations = need.memory.activations * static_cast<std::size_t>(kept);
      const std::int64_t left = std::min(kept, RestoreAhead(plan, stage.module));
      need.gone_at_restore = need.memory.activations *
                             static_cast<std::size_t>(std::max<std::int64_t>(0, kept - left));
    }
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

std::map<int, std::size_t> HostNeeds(const Config& config, const std::vector<StageNeed>& stages) {
  std::map<int, std::size_t> beside;
  std::map<int, std::size_t> parameters;
  for (const StageNeed& stage : stages) {
    for (const int rank : stage.ranks) {
      beside[rank] += stage.memory.offloaded;
      parameters[rank] += stage.memory.parameters;
    }
  }
  const auto savings = RankSavings(stages);
  std::map<int, std::size_t> needs = RankNeeds(stages);
  for (auto& [rank, bytes] : needs) {
    bytes = config.cluster.backend == Backend::kCuda ? std::max(beside[rank], parameters[rank])
                                                     : bytes - savings.at(rank) + beside[rank];
  }
  return needs;
}

std::map<int, std::size_t> RankSavings(const std::vector<StageNeed>& stages) {
  std::map<int, std::size_t> away;
  std::map<int, std::size_t> gone;
  for (const StageNeed& stage : stages) {
    for (const int rank : stage.ranks) {
      away[rank] += stage.memory.offloaded;
      gone[rank] += stage.gone_at_restore;
    }
  }
  for (auto& [rank, bytes] : away) bytes = std::min(bytes, gone[rank]);
  return away;
}

}  // namespace troupe
