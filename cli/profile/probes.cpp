#include "cli/profile/probes.hpp"

#include <algorithm>
#include <utility>

#include "layout/text.hpp"
#include "plan/search/space.hpp"

namespace troupe {
namespace {

/// No two modules share a rank.
PlannedJob Apart(const Config& config, std::int64_t samples) {
  PlannedJob job;
  job.sink.micro_batch_size = samples;
  job.sink.microbatches = 4;  // caches are as warm as in a run
  job.encoders.assign(config.modules.size() - 1, {.placement = Placement::kDisjoint});
  return job;
}

/// All encoders inside the language model, on one rank.
PlannedJob Together(const Config& config, std::int64_t samples) {
  PlannedJob job = Apart(config, samples);
  for (EncoderPoint& encoder : job.encoders) encoder.placement = Placement::kInline;
  job.sink.inlined = (1U << job.encoders.size()) - 1U;
  return job;
}

/// Changes the layout of every module by `change`, which returns whether it changed.
template <class Change>
bool ChangeLayouts(const Config& config, PlannedJob& job, Change change) {
  bool changed = false;
  std::size_t encoder = 0;
  for (const ModuleConfig& module : config.modules) {
    const bool is_sink = module.name == config.Sink().name;
    Layout& layout = is_sink ? job.sink.layout : job.encoders.at(encoder++).layout;
    changed = change(module, layout) || changed;
  }
  return changed;
}

/// Three stages, so that one has neither what comes before the layers nor what comes after them.
bool InStages(const ModuleConfig& module, Layout& layout) {
  const auto split = module.model->split_layers();
  if (!split || split->number < 2) return false;
  layout.pp = static_cast<int>(std::min<std::int64_t>(3, split->number));
  return true;
}

bool OverTp(const ModuleConfig& module, Layout& layout) {
  if (!module.model->AllowsTp(2)) return false;
  layout.tp = 2;
  return true;
}

}  // namespace

Config WithFewLayers(Config config) {
  constexpr std::int64_t kMostLayers = 6;  // three stages of two
  for (ModuleConfig& module : config.modules) {
    module.model->KeepLayers(kMostLayers);
    module.layers_per_stage.clear();
    module.layout.pp = module.chunks = 1;  // six layers may be fewer than the stages
    module.weights.reset();
  }
  for (EdgeConfig& edge : config.edges) {
    if (edge.through) edge.through->weights.reset();
  }
  return config;
}

/// Makes what needs more GPUs than there are share one, or leaves it out.
static void ShareGpus(int gpus, std::vector<Probe>& probes) {
  std::erase_if(probes, [gpus](const Probe& probe) {
    return probe.config.cluster.ranks > gpus &&
           (probe.use == ProbeUse::kGroups || probe.use == ProbeUse::kLinks);
  });
  for (Probe& probe : probes) {
    ClusterConfig& cluster = probe.config.cluster;
    if (cluster.ranks <= gpus) continue;
    cluster.ranks_per_gpu = cluster.ranks;
    probe.config.schedule.microbatches =
        1;  // a pass waits for the one before, but not for another encoder
  }
}

std::vector<Probe> ProbesOf(const Config& config, int gpus) {
  Config base = WithFewLayers(config);
  base.trace.messages = true;
  base.checkpoint = {.every = 0, .every_minutes = 0.0, .async = false, .replicas = 0};
  for (const ModuleConfig& module : base.modules) {
    if (module.model->computes()) continue;
    throw LayoutError("module " + module.name + " states its times; expected modules that compute");
  }
  std::vector<Probe> probes;
  const auto add = [&](const PlannedJob& job, ProbeUse use, const std::string& layouts) {
    probes.push_back(
        {Applied(base, job), use, Counted(job.sink.micro_batch_size, "sample") + layouts});
  };
  const std::int64_t usual = config.schedule.micro_batch_size;
  for (std::int64_t samples = 1; samples <= 2 * usual; samples *= 2) {
    add(Apart(base, samples), ProbeUse::kRates, "");
  }
  for (const std::int64_t samples : {std::max<std::int64_t>(1, usual / 4), usual}) {
    PlannedJob job = Apart(base, samples);
    if (ChangeLayouts(base, job, OverTp)) add(job, ProbeUse::kGroups, " with tp 2");
    job = Apart(base, samples);
    if (ChangeLayouts(base, job, InStages)) add(job, ProbeUse::kRates, " in 3 stages");
    if (usual == 1) break;
  }
  PlannedJob together = Together(base, usual);
  together.sink.microbatches = 8;
  add(together, ProbeUse::kFlow, " of 8 microbatches on one rank");
  if (std::ranges::all_of(base.modules, [](const auto& of) { return of.model->AllowsTp(2); })) {
    for (const std::int64_t samples : {std::max<std::int64_t>(1, usual / 4), usual}) {
      PlannedJob pair = Together(base, samples);
      pair.sink.layout.tp = 2;
      add(pair, ProbeUse::kLinks, " on two ranks with tp 2");
      if (usual == 1) break;
    }
  }
  if (gpus > 0) ShareGpus(gpus, probes);
  return probes;
}

}  // namespace troupe
