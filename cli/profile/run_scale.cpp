#include "cli/profile/run_scale.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "app/resume.hpp"
#include "app/run_directory.hpp"
#include "cli/profile/measured_pass.hpp"
#include "cli/profile/traced_job.hpp"
#include "cluster/hello_check.hpp"
#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/paths.hpp"
#include "data/row_source.hpp"
#include "layout/text.hpp"
#include "plan/cost/stage_price.hpp"
#include "trace/analyze/index.hpp"
#include "trace/analyze/median.hpp"
#include "trace/analyze/summary.hpp"

namespace troupe {
namespace {

/// The batches for which a run is compared: enough for their average to be that of its samples.
constexpr int kComparedBatches = 8;

/// Seconds of all passes of a module in a step, on all of its replicas.
struct PassSums {
  double computing_s = 0.0;
  double sending_s = 0.0;
  void Add(const Breakdown& pass, double share) {
    sending_s += share * pass.communication();
    computing_s += share * (pass.total() - pass.communication());
  }
};
struct ModuleSums {
  PassSums forward;
  PassSums backward;
};

/// Returns what the cost model predicts, by module, on the average of some batches. Where ranks are threads, their
/// time on a core was measured, in which nothing waits for a link.
std::map<std::string, ModuleSums> PredictedSums(const JobPlan& plan, DeviceModel device) {
  const Config& config = plan.config();
  if (config.cluster.backend == Backend::kCpu) {
    device.topology.inside = device.topology.between = LinkRate();
  }
  RowSource source(config);
  std::map<std::string, ModuleSums> sums;
  constexpr double kShare = 1.0 / kComparedBatches;
  for (int batch = 0; batch < kComparedBatches; ++batch) {
    const PlacedSamples samples = source.PlacedShapesOf(RoundOn(config, batch, batch));
    for (const StagePlan& stage : plan.stages()) {
      const ModulePlan& module = plan.ModuleOf(stage.module);
      const StagePrice price(config, device, module.config->name, stage.pp);
      ModuleSums& sum = sums[module.config->name];
      const auto units = module.units.In(config.schedule.microbatches).count;
      for (std::int64_t unit = 0; unit < units; ++unit) {
        for (int dp = 0; dp < module.config->layout.dp; ++dp) {
          const PassCost cost = price.Of(WorkOfUnit(plan, samples, stage.module, dp, unit));
          sum.forward.Add(cost.forward, kShare);
          sum.backward.Add(cost.inputs, kShare);
          sum.backward.Add(cost.weights, kShare);
        }
      }
    }
  }
  return sums;
}

struct MeasuredSums {
  double forward_s = 0.0;
  double backward_s = 0.0;
};

std::map<std::string, MeasuredSums> SumsOfTrace(const JobPlan& plan, const RunTrace& trace) {
  std::set<std::int64_t> rounds;
  std::map<std::string, MeasuredSums> sums;
  for (const MeasuredPass& pass :
       MeasuredPassesOf(plan, trace, [](std::int64_t round) { return round; })) {
    if (!IsPass(pass.kind)) continue;
    rounds.insert(pass.batch);
    const std::string& module = plan.ModuleOf(plan.stages()[At(pass.stage)].module).config->name;
    MeasuredSums& sum = sums[module];
    (pass.kind == WorkKind::kForward ? sum.forward_s : sum.backward_s) += Median(pass.core_s);
  }
  for (auto& [module, sum] : sums) {
    sum.forward_s /= static_cast<double>(rounds.size());
    sum.backward_s /= static_cast<double>(rounds.size());
  }
  return sums;
}

/// The factor of what is computed. What is sent takes as long as the device says.
double FactorOf(double measured_s, const PassSums& predicted) {
  constexpr double kLeast = 0.05;
  if (predicted.computing_s <= 0.0 || measured_s <= 0.0) return 1.0;
  return std::max(kLeast, (measured_s - predicted.sending_s) / predicted.computing_s);
}

OperationRates Times(OperationRates rates, double factor) {
  for (double* rate : {&rates.operation_s, &rates.linear_flop_s, &rates.linear_element_s,
                       &rates.attention_flop_s, &rates.attention_score_s, &rates.element_s}) {
    *rate *= factor;
  }
  return rates;
}

/// Whether a key states the kind of a module, or is one of its kind.
bool IsOfModel(const Config& config, const std::string& key) {
  return std::ranges::any_of(config.modules, [&](const ModuleConfig& module) {
    const std::string prefix = "modules." + module.name + ".";
    if (!key.starts_with(prefix)) return false;
    const std::string name = key.substr(prefix.size());
    return name == "kind" || std::ranges::any_of(module.model.kind().keys(),
                                                 [&](const auto& own) { return own.name == name; });
  });
}

}  // namespace

void RequireSameModules(const std::string& run_directory, const Config& planned) {
  const auto of_model = [&](const std::string& key, const KeySpec&) {
    return IsOfModel(planned, key);
  };
  const Config run = LoadConfig(ResolvedFile(run_directory)).config;
  std::vector<std::string> missing;
  for (const ModuleConfig& module : planned.modules) {
    if (run.Find(module.name) == nullptr) missing.push_back(module.name);
  }
  std::string text;
  if (!missing.empty()) {
    text = "that run has no module " + Listed(missing, " and ");
  } else {
    text = DescribeDifferences(KeyLines(planned, of_model), KeyLines(run, of_model), "that run");
  }
  if (text.empty()) return;
  throw LaunchError("--from: " + run_directory +
                    ": expected a run of the same modules, got: " + text);
}

RunScale ScaleOf(const std::string& run_directory, const DeviceModel& device) {
  const RunTrace trace = ReadRunTrace(run_directory);
  const LoadedConfig run = LoadConfig(ResolvedFile(run_directory));
  RequireDataFiles(run);
  RunScale scale{run.config, Median(StepsOf(trace)), {}, ""};
  if (scale.config.cluster.backend == Backend::kCpu) {
    scale.crowded = RanksSharingCores(TraceIndex(trace));
  }
  const JobPlan plan(scale.config);
  const auto measured = SumsOfTrace(plan, trace);
  if (measured.empty()) {
    throw std::runtime_error(run_directory +
                             ": expected the passes of a step in its trace, got none");
  }
  for (const auto& [module, predicted] : PredictedSums(plan, device)) {
    const auto found = measured.find(module);
    if (found == measured.end()) continue;
    scale.modules.push_back({module, FactorOf(found->second.forward_s, predicted.forward),
                             FactorOf(found->second.backward_s, predicted.backward)});
  }
  return scale;
}

void ScaleRates(const RunScale& scale, DeviceModel& device) {
  for (const ModuleScale& module : scale.modules) {
    PassRates rates = device.RatesOf(module.module);
    rates.forward = Times(rates.forward, module.forward);
    rates.backward = Times(rates.backward, module.backward);
    device.modules[module.module].rates = rates;
  }
}

std::string ScaleText(const std::string& run_directory, const RunScale& scale,
                      const DeviceModel& device) {
  std::string text = run_directory + Formatted(": %.1f ms per step. ", scale.measured_s * 1e3) +
                     "Passes there, forward and backward, as multiples of those on " + device.name +
                     ": ";
  text += Listed(scale.modules, ", ", [](const ModuleScale& module) {
    return module.module + Formatted(" %.2f and %.2f", module.forward, module.backward);
  });
  text += "\n";
  if (!scale.crowded.empty()) {
    text += scale.crowded + " there: its steps took longer than with a core for each\n";
  }
  return text;
}

}  // namespace troupe
