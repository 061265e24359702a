#include "plan/search/planner.hpp"

#include <algorithm>

#include "plan/cost/account.hpp"
#include "plan/memory.hpp"
#include "plan/model_flops.hpp"
#include "plan/process_plan.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

double MostBytes(const JobPlan& plan) {
  std::size_t most = 0;
  for (const auto& [rank, bytes] :
       RankNeeds(StageNeeds(plan, ProcessPlan(plan.config().cluster)))) {
    most = std::max(most, bytes);
  }
  return static_cast<double>(most);
}

/// The share of the time of all passes that is communication.
double SendingOf(const JobPlan& plan, const JobCost& cost) {
  double all_s = 0.0;
  double sending_s = 0.0;
  for (const StagePlan& stage : plan.stages()) {
    const Breakdown passes = PassesOf(plan, cost, stage.stage);
    const auto ranks = static_cast<double>(plan.AllRanksOf(stage).size());
    all_s += ranks * passes.total();
    sending_s += ranks * passes.communication();
  }
  return all_s > 0.0 ? sending_s / all_s : 0.0;
}

}  // namespace

Plan PlanOf(const Config& config, const PlannedJob& job, const DeviceModel& device) {
  Plan result{job, Applied(config, job), {}};
  // Copies for checkpoints are in host memory, and take long to count.
  Config without = result.config;
  without.checkpoint = {.every = 0, .every_minutes = 0.0, .async = false, .replicas = 0};
  const JobPlan plan(std::move(without));
  result.cost = CostOfJob(plan, device);
  result.bubble = BubbleOf(plan, result.cost.passes);
  result.sending = SendingOf(plan, result.cost);
  result.bytes = MostBytes(plan);
  if (device.peak_flops_per_s > 0.0) {
    const ModuleConfig& sink = result.config.Sink();
    const double flops = TotalFlops(
        StepFlops(result.config, FullSamples(result.config, sink, result.config.global_batch())));
    result.mfu = flops / (result.cost.step_s * device.peak_flops_per_s * job.ranks);
  }
  return result;
}

std::vector<Plan> BestPlans(const SearchSpace& space, const Config& config,
                            const DeviceModel& device, std::size_t most) {
  std::vector<Plan> plans;
  // The search knows memory a little less well than the estimate: if nothing fits, slower ones may.
  for (const double within : {kHandedOver, 1.5, 10.0}) {
    std::vector<PlannedJob> jobs = space.Best(within);
    if (jobs.size() > kMostSimulated) jobs.resize(kMostSimulated);
    for (const PlannedJob& job : jobs) {
      Plan plan = PlanOf(config, job, device);
      if (device.memory_bytes > 0.0 && plan.bytes > device.memory_bytes) continue;
      plans.push_back(std::move(plan));
    }
    if (!plans.empty()) break;
  }
  std::ranges::stable_sort(plans, {}, [](const Plan& plan) { return plan.cost.step_s; });
  if (plans.size() > most)
    plans.erase(plans.begin() + static_cast<std::ptrdiff_t>(most), plans.end());
  return plans;
}

}  // namespace troupe
