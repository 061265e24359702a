#include "plan/cost/job_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/cost/rank_cost.hpp"
#include "plan/row_cuts.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

std::int64_t Ns(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }

/// The elements that a replica of the edge's end has of a microbatch, all its parts along cp together.
double ElementsOfEdge(const JobPlan& plan, const EdgePlan& edge, int end) {
  const Config& config = plan.config();
  const ModuleConfig& from = *plan.ModuleOf(edge.from).config;
  const ModuleConfig& to = *plan.ModuleOf(edge.to).config;
  const EdgeConfig& own = *config.FindEdge(from.name, to.name);
  const bool projected = own.through && own.through->on == ProjectorEnd::kFrom;
  const std::int64_t width =
      projected ? ProjectorShapeOf(config, own).out : from.model->row_width();
  const std::int64_t samples =
      CeilDivide(plan.samples_per_microbatch(), plan.ModuleOf(end).config->layout.dp);
  // A colocated encoder sends a window at a time.
  const std::int64_t window =
      plan.ModuleOf(edge.from).units.In(config.schedule.microbatches).microbatches_each;
  const std::int64_t items = samples * MostItemsOfSample(config, from) * window;
  return Product(items * from.model->rows_per_item(), width);
}

/// The time over a boundary: a leader sends the rows of its part, or receives them, whichever are
/// more; then they go to all ranks that need them.
double BoundaryTime(const JobPlan& plan, const DeviceModel& device, const EdgePlan& edge) {
  const double bytes = RowBytes(plan.config());
  const Layout& from = plan.ModuleOf(edge.from).config->layout;
  const Layout& to = plan.ModuleOf(edge.to).config->layout;
  const double sent = bytes * ElementsOfEdge(plan, edge, edge.from) / from.cp;
  const double received = bytes * ElementsOfEdge(plan, edge, edge.to) / to.cp;
  if (edge.placement == Placement::kColocated) {
    // Ranks gather what they do not have.
    const auto ranks = static_cast<int>(std::max<std::int64_t>(1, CeilDivide(from.dp, to.dp)));
    return RingTime(device.topology.LinkOf(ranks, 1), received, ranks);
  }
  const int ranks = plan.config().cluster.ranks;
  return device.topology.LinkOf(ranks, 1).TimeOf(std::max(sent, received)) +
         RingTime(device.topology.LinkOf(to.tp, 1), received, to.tp);
}

/// The time between two stages of a module, rank by rank.
double HopTime(const JobPlan& plan, const DeviceModel& device, const ModuleConfig& module,
               const StageLink& hop) {
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
  const Topology& topology = device.topology;
  bool inside = true;
  for (std::size_t i = 0; i < from.size(); ++i) {
    inside = inside && from[i] / topology.devices_per_node == to[i] / topology.devices_per_node;
  }
  return (inside ? topology.inside : topology.between)
      .TimeOf(RowBytes(plan.config()) * elements / parts);
}

}  // namespace

std::vector<PassCost> StageCosts(const JobPlan& plan, const DeviceModel& device) {
  std::vector<PassCost> costs;
  for (const StagePlan& stage : plan.stages()) {
    const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
    costs.push_back(CostOfStage(plan.config(), device, module.name, stage.pp,
                                MostWorkOfUnit(plan.config(), module)));
  }
  return costs;
}

std::vector<std::int64_t> LinkTimes(const JobPlan& plan, const DeviceModel& device) {
  std::vector<std::int64_t> times;
  for (const StageLink& link : plan.graph().links()) {
    const ModulePlan& module = plan.ModuleOf(plan.stages()[At(link.from)].module);
    const bool computes = module.config->model->computes();
    const double seconds = !computes ? 0.0
                           : link.edge < 0
                               ? HopTime(plan, device, *module.config, link)
                               : BoundaryTime(plan, device, plan.edges()[At(link.edge)]);
    times.push_back(Ns(seconds));
  }
  return times;
}

PassDuration DurationOf(const std::vector<PassCost>& stages, const Schedule& schedule) {
  struct Times {
    std::int64_t forward = 0;
    std::int64_t backward = 0;
    std::int64_t weights = 0;
  };
  std::vector<Times> times;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const PassCost& cost = stages[stage];
    const std::int64_t weights = Ns(cost.weights.total());
    const bool split = schedule.rules.at(stage).splits_backward;
    const std::int64_t inputs = Ns(cost.inputs.total());
    times.push_back({Ns(cost.forward.total()), split ? inputs : inputs + weights, weights});
  }
  return [times = std::move(times)](int stage, const Pass& pass) {
    const Times& of = times.at(At(stage));
    if (pass.kind == PassKind::kForward) return of.forward;
    return pass.kind == PassKind::kWeight ? of.weights : of.backward;
  };
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

JobCost CostOfJob(const JobPlan& plan, const DeviceModel& device) {
  const Config& config = plan.config();
  JobCost cost;
  cost.stages = StageCosts(plan, device);
  cost.link_ns = LinkTimes(plan, device);
  Schedule schedule = plan.schedule();
  schedule.link_ns = cost.link_ns;
  cost.passes = Simulate(plan.graph(), schedule, DurationOf(cost.stages, schedule),
                         config.schedule.microbatches);
  const std::string why = WhyBlocked(plan.graph(), cost.passes);
  if (!why.empty()) throw LayoutError(ToString(config.schedule.kind) + ": " + why);
  cost.passes_s = 1e-9 * static_cast<double>(cost.passes.makespan_ns);
  cost.summed_s = cost.passes_s;
  // By device: what its stages do after their passes, one after the other.
  std::map<int, UpdateCost> after;
  for (const StagePlan& stage : plan.stages()) {
    const auto& passes = cost.passes.stages[At(stage.stage)];
    const double end_s = passes.empty() ? 0.0 : 1e-9 * static_cast<double>(passes.back().end_ns);
    const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
    const UpdateCost update = CostOfUpdate(config, device, module.name, stage.pp,
                                           cost.stages[At(stage.stage)].backward_s());
    cost.updates.push_back(update);
    for (const int on : schedule.DevicesOf(stage.stage)) {
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
  cost.step_s = cost.gathered_s + device.step_s;
  return cost;
}

}  // namespace troupe
