#include "plan/cost/job_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/cost/rank_cost.hpp"
#include "plan/cost/stage_price.hpp"
#include "plan/pass_memory.hpp"
#include "plan/row_cuts.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

std::int64_t Ns(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }

/// The elements that a replica of the edge's end has of a microbatch, all its parts along cp together.
double ElementsOfEdge(const JobPlan& plan, const EdgePlan& edge, int end) {
  const Config& config = plan.config();
  const ModuleConfig& from = *plan.ModuleOf(edge.from).config;
  const std::int64_t samples =
      CeilDivide(plan.samples_per_microbatch(), plan.ModuleOf(end).config->layout.dp);
  // A colocated encoder sends a window at a time.
  const std::int64_t window =
      plan.ModuleOf(edge.from).units.In(config.schedule.microbatches).microbatches_each;
  const std::int64_t items = samples * MostItemsOfSample(config, from) * window;
  return Product(items * from.model->rows_per_item(), RowWidthOn(plan, edge));
}

/// The number of ranks on devices of the main kind.
int MainRanks(const JobPlan& plan, const JobDevices& devices) {
  int ranks = plan.config().cluster.ranks;
  for (const ModulePlan& module : plan.modules()) {
    if (devices.HasOwn(module.config->name)) ranks -= module.config->layout.num_ranks();
  }
  return ranks;
}

/// The time over a boundary, of which a part is filled: a leader sends the rows of its part, or receives them, whichever are
/// more; then they go to all ranks that need them.
double BoundaryTime(const JobPlan& plan, const JobDevices& devices, const EdgePlan& edge,
                    double filled) {
  const double bytes = filled * RowBytes(plan.config());
  const ModuleConfig& sender = *plan.ModuleOf(edge.from).config;
  const ModuleConfig& receiver = *plan.ModuleOf(edge.to).config;
  const Layout& from = sender.layout;
  const Layout& to = receiver.layout;
  const Topology& topology = devices.Of(receiver.name).topology;
  const double sent = bytes * ElementsOfEdge(plan, edge, edge.from) / from.cp;
  const double received = bytes * ElementsOfEdge(plan, edge, edge.to) / to.cp;
  if (edge.placement == Placement::kColocated) {
    // Ranks gather what they do not have.
    const auto ranks = static_cast<int>(std::max<std::int64_t>(1, CeilDivide(from.dp, to.dp)));
    return RingTime(topology.LinkOf(ranks, 1), received, ranks);
  }
  const bool mixed = devices.HasOwn(sender.name) || devices.HasOwn(receiver.name);
  const LinkRate link = mixed ? devices.Between(sender.name, receiver.name)
                              : topology.LinkOf(MainRanks(plan, devices), 1);
  return link.TimeOf(std::max(sent, received)) +
         RingTime(topology.LinkOf(to.tp, 1), received, to.tp);
}

/// The same between two stages of a module, rank by rank.
double HopTime(const JobPlan& plan, const JobDevices& devices, const ModuleConfig& module,
               const StageLink& hop, double filled) {
  const Layout& layout = module.layout;
  const auto text = module.model->text();
  const std::int64_t rows =
      text ? text->context
           : MostItemsOfSample(plan.config(), module) * module.model->rows_per_item();
  const double elements = Product(CeilDivide(plan.samples_per_microbatch(), layout.dp) * rows,
                                  module.model->row_width());
  const double parts = layout.cp * (layout.cuts_rows() ? layout.tp : 1.0);
  const std::vector<int> from = plan.AllRanksOf(plan.stages()[At(hop.from)]);
  const std::vector<int> to = plan.AllRanksOf(plan.stages()[At(hop.to)]);
  const Topology& topology = devices.Of(module.name).topology;
  // Devices of another kind begin with a node.
  const int first = devices.HasOwn(module.name) ? std::ranges::min(module.ranks) : 0;
  const auto node_of = [&](int rank) { return (rank - first) / topology.devices_per_node; };
  bool inside = true;
  for (std::size_t i = 0; i < from.size(); ++i) {
    inside = inside && node_of(from[i]) == node_of(to[i]);
  }
  return (inside ? topology.inside : topology.between)
      .TimeOf(filled * RowBytes(plan.config()) * elements / parts);
}

/// `filled`: FilledParts.
std::vector<std::int64_t> LinkTimes(const JobPlan& plan, const JobDevices& devices,
                                    const std::vector<double>& filled) {
  std::vector<std::int64_t> times;
  for (const StageLink& link : plan.graph().links()) {
    const int from = plan.stages()[At(link.from)].module;
    const ModuleConfig& module = *plan.ModuleOf(from).config;
    const double part = filled[At(from)];
    const double seconds = link.edge < 0
                               ? HopTime(plan, devices, module, link, part)
                               : BoundaryTime(plan, devices, plan.edges()[At(link.edge)], part);
    const double message_s = devices.Of(module.name).message_s;
    times.push_back(module.model->computes() ? Ns(message_s + seconds) : 0);
  }
  return times;
}

/// Returns the duration of the passes of `schedule`: a split backward takes the time of the inputs.
PassDuration DurationOf(const std::vector<UnitCosts>& stages, const Schedule& schedule) {
  return [&stages, &schedule](int stage, const Pass& pass) {
    const PassCost& cost = stages.at(At(stage)).Of(pass.unit);
    if (pass.kind == PassKind::kForward) return Ns(cost.forward.total());
    const std::int64_t weights = Ns(cost.weights.total());
    if (pass.kind == PassKind::kWeight) return weights;
    const std::int64_t inputs = Ns(cost.inputs.total());
    return schedule.rules.at(At(stage)).splits_backward ? inputs : inputs + weights;
  };
}

ReplicaCosts CostsOfReplicas(const JobPlan& plan, const JobDevices& devices,
                             const PlacedSamples& samples, const StagePlan& stage) {
  const ModulePlan& module = plan.ModuleOf(stage.module);
  const Units units = module.units.In(plan.config().schedule.microbatches);
  const std::string& name = module.config->name;
  const StagePrice price(plan.config(), devices.Of(name), name, stage.pp);
  ReplicaCosts costs;
  for (std::int64_t unit = 0; unit < units.count; ++unit) {
    auto& of_unit = costs.emplace_back();
    for (int dp = 0; dp < module.config->layout.dp; ++dp) {
      of_unit.push_back(price.Of(WorkOfUnit(plan, samples, stage.module, dp, unit)));
    }
  }
  return costs;
}

/// Returns the replicas of `module` that a replica of the sink waits for.
Interval ReplicasFor(const JobPlan& plan, const ModulePlan& module, int sink_dp, int replica) {
  const int replicas = module.config->layout.dp;
  // What colocated replicas computed is exchanged before any goes on.
  if (module.colocated_encoder) return {0, replicas};
  const std::int64_t samples = plan.samples_per_microbatch();
  const Interval own = PartOf(samples, sink_dp, replica);
  Interval found = {replicas, 0};
  for (int dp = 0; dp < replicas; ++dp) {
    if (Intersect(PartOf(samples, replicas, dp), own).empty()) continue;
    found = {std::min<std::int64_t>(found.begin, dp), dp + 1};
  }
  return found;
}

/// The slowest of those replicas, unit by unit.
UnitCosts SlowestOf(const ReplicaCosts& costs, const Interval& replicas) {
  std::vector<PassCost> units;
  for (const auto& of_unit : costs) {
    units.push_back(*std::max_element(
        of_unit.begin() + replicas.begin, of_unit.begin() + replicas.end,
        [](const PassCost& a, const PassCost& b) {
          return a.forward.total() + a.backward_s() < b.forward.total() + b.backward_s();
        }));
  }
  return UnitCosts(std::move(units));
}

}  // namespace

std::vector<PassCost> StageCosts(const JobPlan& plan, const JobDevices& devices) {
  std::vector<PassCost> costs;
  for (const StagePlan& stage : plan.stages()) {
    const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
    costs.push_back(CostOfStage(plan.config(), devices.Of(module.name), module.name, stage.pp,
                                MostWorkOfUnit(plan.config(), module)));
  }
  return costs;
}

std::vector<std::int64_t> LinkTimes(const JobPlan& plan, const JobDevices& devices) {
  return LinkTimes(plan, devices, std::vector<double>(plan.modules().size(), 1.0));
}

double BubbleOf(const JobPlan& plan, const Simulation& simulation) {
  double computed_ns = 0.0;
  for (const StagePlan& stage : plan.stages()) {
    const auto& grid = plan.ModuleOf(stage.module).grid;
    const int ranks = grid.layout().num_ranks() / grid.layout().pp;
    for (const TimedPass& pass : simulation.stages[At(stage.stage)]) {
      computed_ns += static_cast<double>(pass.end_ns - pass.begin_ns) * ranks;
    }
  }
  const double all_ns =
      static_cast<double>(simulation.makespan_ns) * static_cast<double>(plan.lock_steps().size());
  return all_ns > 0.0 ? 1.0 - computed_ns / all_ns : 0.0;
}

/// Plays the passes of a step.
static JobCost Played(const JobPlan& plan, std::vector<UnitCosts> stages,
                      const std::vector<std::int64_t>& link_ns) {
  const Config& config = plan.config();
  JobCost cost;
  cost.stages = std::move(stages);
  cost.link_ns = link_ns;
  Schedule schedule = plan.schedule();
  schedule.link_ns = link_ns;
  cost.passes = Simulate(plan.graph(), schedule, DurationOf(cost.stages, schedule),
                         config.schedule.microbatches);
  const std::string why = WhyBlocked(plan.graph(), cost.passes);
  if (!why.empty()) throw LayoutError(ToString(config.schedule.kind) + ": " + why);
  cost.passes_s = 1e-9 * static_cast<double>(cost.passes.makespan_ns);
  return cost;
}

/// Adds what follows the passes.
static void AddUpdates(const JobPlan& plan, const JobDevices& devices, JobCost& cost) {
  const Config& config = plan.config();
  cost.summed_s = cost.passes_s;
  // By device: what its stages do after their passes, one after the other.
  std::map<int, UpdateCost> after;
  for (const StagePlan& stage : plan.stages()) {
    const auto& passes = cost.passes.stages[At(stage.stage)];
    const double end_s = passes.empty() ? 0.0 : 1e-9 * static_cast<double>(passes.back().end_ns);
    const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
    const double last_backward_s =
        passes.empty() ? 0.0
                       : cost.stages[At(stage.stage)].Of(passes.back().pass.unit).backward_s();
    const UpdateCost update =
        CostOfUpdate(config, devices.Of(module.name), module.name, stage.pp, last_backward_s);
    cost.updates.push_back(update);
    for (const int on : plan.schedule().DevicesOf(stage.stage)) {
      UpdateCost& sum = after[on];
      sum.exposed_s += update.exposed_s;
      sum.update_s += update.update_s;
      sum.gather_s += update.gather_s;
      cost.summed_s = std::max(cost.summed_s, end_s + sum.exposed_s);
    }
  }
  // The norm of all gradients comes before any update.
  double update_s = 0.0;
  double gather_s = 0.0;
  for (const auto& [on, sum] : after) {
    update_s = std::max(update_s, sum.update_s);
    gather_s = std::max(gather_s, sum.gather_s);
  }
  cost.updated_s = cost.summed_s + update_s;
  cost.gathered_s = cost.updated_s + gather_s;
  cost.step_s = cost.gathered_s + devices.main.step_s;
}

JobCost CostOfJob(const JobPlan& plan, const JobDevices& devices) {
  std::vector<UnitCosts> stages;
  for (PassCost& stage : StageCosts(plan, devices)) stages.emplace_back(std::vector{stage});
  JobCost cost = Played(plan, std::move(stages), LinkTimes(plan, devices));
  AddUpdates(plan, devices, cost);
  return cost;
}

JobCost PlayedPasses(const JobPlan& plan, const std::vector<ReplicaCosts>& costs,
                     const std::vector<std::int64_t>& link_ns) {
  const ModuleConfig& sink = plan.config().Sink();
  JobCost slowest;
  for (int replica = 0; replica < sink.layout.dp; ++replica) {
    std::vector<UnitCosts> stages;
    for (const StagePlan& stage : plan.stages()) {
      const ModulePlan& module = plan.ModuleOf(stage.module);
      const Interval replicas = module.config->name == sink.name
                                    ? Interval{replica, replica + 1}
                                    : ReplicasFor(plan, module, sink.layout.dp, replica);
      stages.push_back(SlowestOf(costs[At(stage.stage)], replicas));
    }
    JobCost cost = Played(plan, std::move(stages), link_ns);
    if (replica == 0 || cost.passes_s > slowest.passes_s) slowest = std::move(cost);
  }
  return slowest;
}

JobCost CostOfJob(const JobPlan& plan, const JobDevices& devices, const PlacedSamples& samples) {
  std::vector<ReplicaCosts> costs;
  for (const StagePlan& stage : plan.stages()) {
    costs.push_back(CostsOfReplicas(plan, devices, samples, stage));
  }
  JobCost cost = PlayedPasses(plan, costs, LinkTimes(plan, devices, FilledParts(plan, samples)));
  AddUpdates(plan, devices, cost);
  return cost;
}

}  // namespace troupe
