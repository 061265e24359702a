#include "plan/memory_estimate.hpp"

#include <cstdint>

#include "plan/layer_split.hpp"
#include "plan/parameters.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// Scores and probabilities are computed in float32, whatever the precision of the rest.
Keeps KeepsOf(const Config& config, AttentionKeeps attention) {
  const bool is_short = config.run.precision == Precision::kBFloat16;
  const bool on_gpu = config.cluster.backend == Backend::kCuda;
  const bool fused = on_gpu || (is_short && attention == AttentionKeeps::kNothing);
  return {.weight = fused ? 0 : (is_short ? 2 : 1), .probability = is_short ? 2 : 1};
}

/// Returns the elements that a projector keeps: the encoder's rows and, from its wide rows, the
/// inputs and outputs of the GELU.
std::int64_t ProjectorElements(const Config& config, const EdgeConfig& edge, const RankWork& work) {
  const ModuleConfig& from = FindModule(config, edge.from);
  return work.samples * from.model->rows_per_item() *
         (from.model->row_width() + 2 * CeilDivide(edge.through->hidden, work.tp));
}

std::int64_t ElementsOf(const Config& config, const StagePart& part, RankWork work) {
  if (part.edge) return ProjectorElements(config, *part.edge, work);
  work.recompute = part.module->recompute;
  return part.module->model->KeptElements(PlaceOf(*part.module, part.pp), work);
}

/// Counts nothing before the first part that trains, since no backward gets there.
std::int64_t ActivationElements(const Config& config, const ModuleConfig& module, int pp,
                                const Keeps& keeps) {
  if (!module.model->computes()) return 0;
  const auto replicas = static_cast<std::int64_t>(module.layout.dp);
  const RankWork work = {.samples = CeilDivide(config.samples_per_microbatch(), replicas),
                         .tp = module.layout.tp,
                         .keeps = keeps};
  std::int64_t elements = 0;
  for (const StagePart& part : StageParts(config, module.name, pp)) {
    if (part.runs_backward()) elements += ElementsOf(config, part, work);
  }
  return elements;
}

}  // namespace

StageMemory EstimateMemory(const Config& config, const std::string& module, int pp,
                           AttentionKeeps attention) {
  const ModuleConfig& own = FindModule(config, module);
  const bool mixed = config.run.precision == Precision::kBFloat16;
  const std::size_t element = config.run.precision == Precision::kFloat64 ? 8 : 4;
  StageMemory memory;
  for (const ParameterSpec& spec : StageParameters(config, module, pp)) {
    // In an uneven cut the last rank's part is the largest.
    const ParameterSlice slice = SliceOf(spec, own.layout.tp - 1, own.layout.tp);
    const std::size_t bytes = static_cast<std::size_t>(NumElements(slice.shape)) * element;
    memory.parameters += bytes;
    if (mixed) memory.rounded += bytes / 2;
    if (spec.frozen) continue;
    memory.gradients += bytes;
    memory.optimizer += 2 * bytes;
  }
  // Forwards use the rounded copies. The masters are only for the update and leave with the
  // moments.
  if (own.offload == Offload::kParameters) {
    memory.offloaded = mixed ? memory.rounded : memory.parameters;
  }
  if (own.offload == Offload::kState) memory.offloaded = memory.state();
  const std::int64_t kept = ActivationElements(config, own, pp, KeepsOf(config, attention));
  memory.activations = static_cast<std::size_t>(kept) * (mixed ? element / 2 : element);
  return memory;
}

}  // namespace troupe
