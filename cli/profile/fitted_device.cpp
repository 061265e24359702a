#include "cli/profile/fitted_device.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "plan/cost/stage_cost.hpp"
#include "plan/model_flops.hpp"
#include "trace/analyze/link_time.hpp"
#include "trace/analyze/median.hpp"

namespace troupe {
namespace {

/// A pass with what the cost model says about it.
struct Measured {
  const MeasuredProbe* probe = nullptr;
  const MeasuredPass* pass = nullptr;
  Observation observation;
};

constexpr int kLargestJob = 65'536;

const std::vector<double OperationRates::*> kRates = {
    &OperationRates::operation_s,       &OperationRates::linear_flop_s,
    &OperationRates::linear_element_s,  &OperationRates::attention_flop_s,
    &OperationRates::attention_score_s, &OperationRates::element_s};

/// What a rank itself does for collectives.
std::vector<SetRate> OwnCollectiveRates() {
  return {[](DeviceModel& of, double s) { of.collective_s = s; },
          [](DeviceModel& of, double s) { of.sum_byte_s = s; }};
}

std::vector<SetRate> LinkRates() {
  return {[](DeviceModel& of, double s) { of.topology.inside.latency_s = s; },
          [](DeviceModel& of, double s) { of.topology.inside.bytes_per_s = 1.0 / s; }};
}

std::string ModuleOfPass(const Measured& measured) {
  const JobPlan& plan = *measured.probe->job.plan;
  return plan.ModuleOf(plan.stages()[At(measured.pass->stage)].module).config->name;
}

/// Of its forward.
double FlopsOf(const TracedJob& job, const MeasuredPass& pass) {
  const JobPlan& plan = *job.plan;
  const StagePlan& stage = plan.stages()[At(pass.stage)];
  const auto& samples = job.batches.at(static_cast<std::size_t>(pass.batch));
  double flops = 0.0;
  for (const StepShape& shape : WorkOfUnit(plan, samples, stage.module, pass.dp, pass.unit)) {
    flops += StageFlops(plan.config(), plan.ModuleOf(stage.module).config->name, stage.pp, shape)
                 .forward;
  }
  return flops;
}

/// Of these uses, by the clock of `seconds`. Those of microbatches without an item of an encoder run all
/// operations on no rows: the model does not count these.
std::vector<Measured> PassesOf(const std::vector<MeasuredProbe>& probes,
                               const std::vector<ProbeUse>& uses,
                               std::vector<double> MeasuredPass::*seconds) {
  std::vector<Measured> found;
  for (const MeasuredProbe& probe : probes) {
    if (std::ranges::find(uses, probe.use) == uses.end()) continue;
    for (const MeasuredPass& pass : probe.job.passes) {
      if (pass.kind != WorkKind::kForward && pass.kind != WorkKind::kBackward) continue;
      const PlacedSamples& samples = probe.job.batches.at(static_cast<std::size_t>(pass.batch));
      const double pass_s = UndisturbedTime(pass.*seconds);
      if (pass_s <= 0.0 || FlopsOf(probe.job, pass) <= 0.0) continue;
      found.push_back({&probe, &pass, {TimeOfPass(*probe.job.plan, samples, pass), pass_s}});
    }
  }
  return found;
}

std::vector<Observation> ObservationsOf(const std::vector<Measured>& passes, WorkKind kind,
                                        const std::string& module) {
  std::vector<Observation> observations;
  for (const Measured& measured : passes) {
    if (measured.pass->kind != kind) continue;
    if (!module.empty() && ModuleOfPass(measured) != module) continue;
    observations.push_back(measured.observation);
  }
  return observations;
}

/// Fits the operations of `module`; "": of all modules together. Passes with tp 2 have narrower products.
/// With one width alone, a product's elements grow as its operations do, and no fit could separate them. What
/// ranks do for their collectives is fitted with them.
void FitOperations(const std::vector<Measured>& passes, const std::string& module,
                   DeviceModel& device) {
  for (const WorkKind kind : {WorkKind::kForward, WorkKind::kBackward}) {
    std::vector<SetRate> rates = OwnCollectiveRates();
    for (double OperationRates::*rate : kRates) {
      rates.push_back([=](DeviceModel& of, double value) {
        PassRates& pass = module.empty() ? of.rates : of.modules[module].rates;
        // GCC 12 assigns to a copy if this is one expression.
        OperationRates& of_kind = kind == WorkKind::kForward ? pass.forward : pass.backward;
        of_kind.*rate = value;
      });
    }
    FitRates(ObservationsOf(passes, kind, module), rates, device);
  }
}

void FitAll(const std::vector<Measured>& passes, const std::vector<SetRate>& rates,
            DeviceModel& device) {
  std::vector<Observation> observations;
  for (const Measured& measured : passes) observations.push_back(measured.observation);
  if (!observations.empty()) FitRates(observations, rates, device);
}

/// What ranks do for collectives on a core, and how long two wait for each other. More ranks than cores would
/// wait for a core, too.
void FitCollectives(const std::vector<MeasuredProbe>& probes, DeviceModel& device) {
  FitAll(PassesOf(probes, {ProbeUse::kGroups}, &MeasuredPass::core_s), OwnCollectiveRates(),
         device);
  FitAll(PassesOf(probes, {ProbeUse::kLinks}, &MeasuredPass::wall_s), LinkRates(), device);
  device.topology.between = device.topology.inside;
}

/// Every rank updates after it has the norm of its gradients, which takes time for each parameter, too.
void FitUpdate(const std::vector<MeasuredProbe>& probes, DeviceModel& device) {
  std::vector<Observation> observations;
  for (const MeasuredProbe& probe : probes) {
    std::map<std::pair<int, std::int64_t>, double> sums;  // by stage, batch
    for (const MeasuredPass& pass : probe.job.passes) {
      if (pass.kind != WorkKind::kReduce && pass.kind != WorkKind::kUpdate) continue;
      sums[{pass.stage, pass.batch}] += UndisturbedTime(pass.core_s);
    }
    for (const auto& [key, seconds] : sums) {
      if (seconds <= 0.0) continue;
      const JobPlan& plan = *probe.job.plan;
      const StagePlan& stage = plan.stages()[At(key.first)];
      const std::string module = plan.ModuleOf(stage.module).config->name;
      observations.push_back({[&plan, module, pp = stage.pp](const DeviceModel& of) {
                                return CostOfUpdate(plan.config(), of, module, pp, 0.0).update_s;
                              },
                              seconds});
    }
  }
  if (observations.empty()) return;
  FitRates(observations, {[](DeviceModel& of, double s) { of.update_parameter_s = s; }}, device);
}

/// Waits of a machine that has other work to do are not those of the program.
double LowerQuartile(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return std::max(0.0, values[values.size() / 4]);
}

/// Adds the times from one piece of work of a rank to the next.
void AddGaps(const RunTrace& trace, std::vector<double>& between_passes,
             std::vector<double>& between_steps) {
  const PassRecord* last = nullptr;
  for (const TraceWork& work : trace.work) {
    const PassRecord& pass = work.pass;
    if (!IsPass(pass.kind) && pass.kind != WorkKind::kReduce && pass.kind != WorkKind::kUpdate) {
      continue;
    }
    if (last != nullptr) {
      const double gap_s = 1e-9 * static_cast<double>(pass.begin_ns - last->end_ns);
      if (IsPass(pass.kind) && IsPass(last->kind)) between_passes.push_back(gap_s);
      if (IsPass(pass.kind) && last->kind == WorkKind::kUpdate) between_steps.push_back(gap_s);
      if (pass.kind == WorkKind::kReduce || pass.kind == WorkKind::kUpdate) {
        between_steps.push_back(gap_s);
      }
    }
    last = &pass;
  }
}

/// Sets what a pass and a step take besides from a job on one rank.
void FitFlow(const TracedJob& job, DeviceModel& device) {
  std::vector<double> between_passes;
  std::vector<double> between_steps;
  for (const RunTrace& trace : job.traces) AddGaps(trace, between_passes, between_steps);
  device.rates.pass_s = LowerQuartile(between_passes);
  // To the sum of gradients, to the update, and to the next step.
  device.step_s = 3.0 * LowerQuartile(between_steps);
  for (auto& [name, module] : device.modules) module.rates.pass_s = device.rates.pass_s;
}

void FitMessages(const std::vector<MeasuredProbe>& probes, DeviceModel& device) {
  std::vector<double> seconds;
  for (const MeasuredProbe& probe : probes) {
    const StageGraph& graph = probe.job.plan->graph();
    for (const RunTrace& trace : probe.job.traces) {
      for (const StageLink& link : graph.links()) {
        const auto ns = LinkTime(trace, graph.IdOf(link.from), graph.IdOf(link.to));
        if (ns) seconds.push_back(1e-9 * static_cast<double>(*ns));
      }
    }
  }
  device.message_s = Median(seconds);
}

}  // namespace

FittedDevice FitDevice(const std::vector<MeasuredProbe>& probes) {
  FittedDevice fitted;
  DeviceModel& device = fitted.device;
  device.topology.devices_per_node = kLargestJob;  // all ranks of a probe are on one node
  const auto all = PassesOf(probes, {ProbeUse::kRates, ProbeUse::kGroups}, &MeasuredPass::core_s);
  const auto alone = PassesOf(probes, {ProbeUse::kRates}, &MeasuredPass::core_s);
  std::map<std::string, std::vector<const Measured*>> by_module;
  for (const Measured& measured : alone) by_module[ModuleOfPass(measured)].push_back(&measured);
  FitOperations(all, "", device);
  for (const auto& [module, passes] : by_module) FitOperations(all, module, device);
  FitCollectives(probes, device);
  FitUpdate(probes, device);
  FitMessages(probes, device);
  for (const MeasuredProbe& probe : probes) {
    if (probe.use == ProbeUse::kFlow) FitFlow(probe.job, device);
  }
  for (const auto& [name, passes] : by_module) {
    ProfiledModule& module = device.modules[name];
    std::vector<double> errors;
    std::vector<double> spreads;
    for (const Measured* measured : passes) {
      const auto& [time, seconds] = measured->observation;
      // A pass begins with what every one takes besides.
      const double fitted_s = time(device) - module.rates.pass_s;
      errors.push_back(std::abs(fitted_s / seconds - 1.0));
      spreads.push_back(SpreadOf(measured->pass->core_s));
      const TracedJob& job = measured->probe->job;
      module.largest_flops = std::max(module.largest_flops, FlopsOf(job, *measured->pass));
      fitted.passes.push_back({name, PassText(*job.plan, *measured->pass), seconds * 1e3,
                               fitted_s * 1e3, spreads.back()});
    }
    module.median_error = Median(errors);
    module.worst_error = std::ranges::max(errors);
    module.spread = Median(spreads);
  }
  return fitted;
}

}  // namespace troupe
