#include "plan/search/planner.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "plan/cost/account.hpp"
#include "plan/memory.hpp"
#include "plan/model_flops.hpp"
#include "plan/process_plan.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

/// Sets what ranks need of their devices.
void SetBytes(const JobPlan& plan, const JobDevices& devices, Plan& result) {
  result.bytes = 0.0;
  result.fullest = {};
  std::map<int, double> memory;  // by rank
  for (const ModulePlan& module : plan.modules()) {
    const double bytes = devices.Of(module.config->name).memory_bytes;
    for (const int rank : module.config->ranks) memory[rank] = bytes;
  }
  for (const auto& [rank, need] : RankNeeds(StageNeeds(plan, ProcessPlan(plan.config().cluster)))) {
    const FilledDevice use{static_cast<double>(need), memory[rank]};
    result.bytes = std::max(result.bytes, use.bytes);
    if (use.share() > result.fullest.share()) result.fullest = use;
  }
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

/// Returns the cost of the step whose time is nearest to the average.
JobCost CostOfSteps(const JobPlan& plan, const JobDevices& devices, const Workload& workload) {
  if (workload.empty()) return CostOfJob(plan, devices);
  std::vector<JobCost> steps;
  double average_s = 0.0;
  for (const PlacedSamples& samples : workload) {
    steps.push_back(CostOfJob(plan, devices, InOrder(plan.config(), samples)));
    average_s += steps.back().step_s / static_cast<double>(workload.size());
  }
  return *std::ranges::min_element(
      steps, {}, [&](const JobCost& step) { return std::abs(step.step_s - average_s); });
}

FlopsByPart FlopsOfStep(const Config& config, const Workload& workload) {
  if (workload.empty()) {
    return FlopsOf(config, {FullSamples(config, config.Sink(), config.global_batch())});
  }
  std::vector<StepShape> samples;
  for (const PlacedSamples& step : workload) {
    for (const auto& place : step) samples.insert(samples.end(), place.begin(), place.end());
  }
  FlopsByPart flops = FlopsOf(config, samples);
  for (auto& [part, of_part] : flops) of_part /= static_cast<double>(workload.size());
  return flops;
}

/// Returns whether the peak of every device is known.
bool KnowsPeaks(const JobDevices& devices) {
  return devices.main.peak_flops_per_s > 0.0 &&
         std::ranges::all_of(devices.own, [](const auto& entry) {
           return entry.second.device.peak_flops_per_s > 0.0;
         });
}

}  // namespace

/// Sets the cost of a step, and what follows from it.
static void Price(const JobDevices& devices, const Workload& workload, Plan& result) {
  // Copies for checkpoints are in host memory, and take long to count.
  Config without = result.config;
  without.checkpoint = {.every = 0, .every_minutes = 0.0, .async = false, .replicas = 0};
  const JobPlan plan(std::move(without));
  result.cost = CostOfSteps(plan, devices, workload);
  result.bubble = BubbleOf(plan, result.cost.passes);
  result.sending = SendingOf(plan, result.cost);
  SetBytes(plan, devices, result);
  result.own_ranks.clear();
  for (const ModuleConfig& module : result.config.modules) {
    if (devices.HasOwn(module.name)) result.own_ranks.push_back(module.layout.num_ranks());
  }
  if (!KnowsPeaks(devices)) return;
  result.use = UtilisationOf(
      result.config, FlopsOfStep(result.config, workload), result.cost.step_s,
      [&](const ModuleConfig& module) { return devices.Of(module.name).peak_flops_per_s; });
}

Plan PlanOf(const Config& config, const PlannedJob& job, const JobDevices& devices,
            const Workload& workload) {
  Plan result{job, Applied(config, job), {}};
  Price(devices, workload, result);
  return result;
}

Plan PlanAsIs(const Config& config, const JobDevices& devices, const Workload& workload) {
  Plan result{{}, config, {}};
  result.job.ranks = config.cluster.ranks;
  // A module keeps its own devices if it has ranks to itself, and no more of them than devices.
  JobDevices there = devices;
  std::erase_if(there.own, [&](const auto& entry) {
    const ModuleConfig& module = FindModule(config, entry.first);
    return module.inline_in || module.layout.num_ranks() > entry.second.number ||
           PlacementOfEdge(config, *config.FindEdge(module.name, config.Sink().name)) !=
               Placement::kDisjoint;
  });
  Price(there, workload, result);
  return result;
}

bool AreTwins(const Plan& a, const Plan& b) {
  const auto alike = [](const Plan& plan) {
    const SinkPoint& sink = plan.job.sink;
    Layout layout = sink.layout;
    layout.dp *= layout.cp;
    layout.cp = 1;
    return std::tuple(layout, sink.microbatches, sink.kind, sink.chunks, sink.recompute,
                      sink.offloads, sink.inlined, sink.window, plan.job.ranks);
  };
  constexpr double kSameTime = 1e-3;
  return alike(a) == alike(b) && a.job.encoders == b.job.encoders &&
         std::abs(a.cost.step_s - b.cost.step_s) <= kSameTime * a.cost.step_s;
}

Plans BestPlans(const SearchSpace& space, const Config& config, const JobDevices& devices,
                std::size_t most, const PlanProgress& progress, const Workload& workload) {
  std::vector<Plan> plans;
  // All plans have the same samples, so one step tells most of them apart.
  const Workload first_step(workload.begin(), workload.begin() + (workload.empty() ? 0 : 1));
  // The search knows memory a little less well than the estimate: if nothing fits, slower ones may.
  for (const double within : {kHandedOver, 1.5, 10.0}) {
    std::vector<PlannedJob> jobs = space.Best(within);
    if (jobs.size() > kMostSimulated) jobs.resize(kMostSimulated);
    std::size_t number = 0;
    for (const PlannedJob& job : jobs) {
      if (progress) progress(number++, jobs.size());
      Plan plan = PlanOf(config, job, devices, first_step);
      if (!plan.fits()) continue;
      plans.push_back(std::move(plan));
    }
    if (!plans.empty()) break;
  }
  const auto step_of = [](const Plan& plan) { return plan.cost.step_s; };
  std::ranges::stable_sort(plans, {}, step_of);
  if (workload.size() > 1) {
    constexpr std::size_t kMore = 12;  // than are wanted
    const auto priced = std::span(plans).first(std::min(plans.size(), most + kMore));
    for (Plan& plan : priced) Price(devices, workload, plan);
    std::ranges::stable_sort(priced, {}, step_of);
  }
  Plans found;
  for (Plan& plan : plans) {
    const Plan& best = found.best.empty() ? plan : found.best.front();
    const int fewest = found.smaller ? found.smaller->job.ranks - 1
                                     : static_cast<int>(kClearlyFewer * best.job.ranks);
    if (plan.job.ranks <= fewest && plan.cost.step_s <= kAboutAsFast * best.cost.step_s) {
      found.smaller = plan;
    }
    if (std::ranges::any_of(found.best, [&](const Plan& each) { return AreTwins(each, plan); })) {
      ++found.twins;
    } else if (found.best.size() < most) {
      found.best.push_back(std::move(plan));
    } else {
      ++found.others;
    }
  }
  return found;
}

}  // namespace troupe
