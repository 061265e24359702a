#include "cli/schedule/stage_times.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "modules/parameters.hpp"
#include "trace/run_trace.hpp"

namespace troupe {
namespace {

constexpr double kFlopsPerSecond = 10e9;

std::int64_t Ns(double ms) { return static_cast<std::int64_t>(std::llround(ms * 1e6)); }

/// Rows that one replica of the module works on in a microbatch.
double RowsOf(const Config& config, const ModuleConfig& module) {
  const double samples = static_cast<double>(config.samples_per_microbatch()) / module.layout.dp;
  const bool vit = module.kind == ModuleKind::kVit;
  return samples * static_cast<double>(vit ? module.vit.rows_per_image() : module.llama.context);
}

/// Two per weight and row, and four per layer, row, context row and hidden unit for attention.
double ForwardFlops(const Config& config, const ModuleConfig& module, int pp) {
  const bool vit = module.kind == ModuleKind::kVit;
  const double rows = RowsOf(config, module);
  double weights = 0.0;
  for (const ParameterSpec& spec : StageParameters(config, module.name, pp)) {
    const bool looked_up = spec.name.find("embed") != std::string::npos;
    if (spec.shape.size() >= 2 && !looked_up) weights += static_cast<double>(spec.num_elements());
  }
  const auto layers = static_cast<double>(vit ? module.vit.built_layers() : module.llama.layers) /
                      module.num_stages();
  const auto hidden = static_cast<double>(vit ? module.vit.hidden : module.llama.hidden);
  const auto context =
      static_cast<double>(vit ? module.vit.rows_per_image() : module.llama.context);
  return 2.0 * weights * rows + 4.0 * layers * rows * context * hidden;
}

StageTime TimeOf(const Config& config, const ModuleConfig& module, int pp) {
  if (module.kind == ModuleKind::kSynthetic) {
    // Stated for the stages of a plain pipeline; virtual ones share that.
    const SyntheticConfig& synthetic = module.synthetic;
    const double share = 1.0 / module.chunks;
    return {Ns(synthetic.forward_ms * share), Ns(synthetic.backward_ms * share),
            Ns(synthetic.backward_ms * share * synthetic.weight_share)};
  }
  const double seconds = ForwardFlops(config, module, pp) / module.layout.tp / kFlopsPerSecond;
  return {Ns(seconds * 1e3), Ns(seconds * 2e3), Ns(seconds * 1e3)};
}

std::int64_t Median(std::vector<std::int64_t> samples) {
  if (samples.empty()) return -1;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace

PassDuration StageTimes::AsPassDuration(const Schedule& schedule) const {
  std::vector<bool> split;
  for (const StageRule& rule : schedule.rules) split.push_back(rule.splits_backward);
  return [stages = stages, split](int stage, const Pass& pass) {
    const StageTime& time = stages.at(static_cast<std::size_t>(stage));
    if (pass.kind == PassKind::kForward) return time.forward_ns;
    if (pass.kind == PassKind::kWeight) return time.weight_ns;
    const bool both = !split[static_cast<std::size_t>(stage)];
    return both ? time.backward_ns : time.backward_ns - time.weight_ns;
  };
}

WorkTime StageTimes::AsWorkTime(const Schedule& schedule) const {
  return [of = AsPassDuration(schedule)](WorkKind kind, int stage, std::int64_t unit) {
    if (kind == WorkKind::kForward) return of(stage, {PassKind::kForward, unit});
    if (kind == WorkKind::kBackward) return of(stage, {PassKind::kBackward, unit});
    if (kind == WorkKind::kWeight) return of(stage, {PassKind::kWeight, unit});
    return std::int64_t{0};
  };
}

StageTimes TimesOf(const Candidate& candidate) {
  const JobPlan& plan = *candidate.plan;
  StageTimes times{"as stated", {}};
  for (const StagePlan& stage : plan.stages()) {
    const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
    if (module.kind != ModuleKind::kSynthetic) {
      times.source = "from the number of multiplications at 10 GFLOP/s per rank";
    }
    times.stages.push_back(TimeOf(plan.config(), module, stage.pp));
  }
  return times;
}

StageTimes TimesFromRun(const Candidate& candidate, const std::string& run_directory) {
  const RunTrace trace = ReadRunTrace(run_directory);
  std::map<std::string, std::map<WorkKind, std::vector<std::int64_t>>> samples;
  for (const TraceWork& work : trace.work) {
    const PassRecord& pass = work.pass;
    samples[trace.stages.at(static_cast<std::size_t>(pass.stage))][pass.kind].push_back(
        pass.end_ns - pass.begin_ns);
  }
  StageTimes times{"medians of " + run_directory, {}};
  const StageGraph& graph = candidate.plan->graph();
  for (int stage = 0; stage < static_cast<int>(graph.stages().size()); ++stage) {
    auto& found = samples[graph.StageName(stage)];
    const std::int64_t forward = Median(found[WorkKind::kForward]);
    if (forward < 0) {
      throw std::runtime_error(run_directory + ": expected passes of " + graph.StageName(stage) +
                               ", got none; a schedule with other stages needs a run of its own");
    }
    const std::int64_t backward = std::max<std::int64_t>(Median(found[WorkKind::kBackward]), 0);
    const std::int64_t weight = Median(found[WorkKind::kWeight]);
    times.stages.push_back(weight < 0 ? StageTime{forward, backward, backward / 2}
                                      : StageTime{forward, backward + weight, weight});
  }
  return times;
}

void Scale(StageTimes& times, const Candidate& candidate, const std::vector<std::string>& scales) {
  for (const std::string& scale : scales) {
    const auto equals = scale.find('=');
    const std::string name = scale.substr(0, equals);
    std::size_t read = 0;
    double factor = -1.0;
    try {
      if (equals != std::string::npos) factor = std::stod(scale.substr(equals + 1), &read);
    } catch (const std::exception&) {
    }
    const bool number = factor >= 0.0 && factor <= 1e6 && read == scale.size() - equals - 1;
    if (!number) {
      throw LayoutError("--scale " + scale + ": expected MODULE=FACTOR, as in vision=0.5");
    }
    bool known = false;
    for (const StagePlan& stage : candidate.plan->stages()) {
      if (candidate.plan->ModuleOf(stage.module).config->name != name) continue;
      known = true;
      StageTime& time = times.stages[static_cast<std::size_t>(stage.stage)];
      for (std::int64_t* ns : {&time.forward_ns, &time.backward_ns, &time.weight_ns}) {
        *ns = static_cast<std::int64_t>(std::llround(static_cast<double>(*ns) * factor));
      }
    }
    if (!known) throw LayoutError("--scale " + scale + ": there is no module \"" + name + "\"");
    times.source += ", " + scale;
  }
}

}  // namespace troupe
