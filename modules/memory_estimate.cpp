#include "modules/memory_estimate.hpp"

#include <cstdint>

#include "modules/layer_split.hpp"
#include "modules/parameters.hpp"
#include "modules/stage_parts.hpp"

namespace troupe {
namespace {

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How much of what a stage keeps for its backward, in elements of the type it computes in.
struct Keeps {
  std::int64_t weight = 1;       ///< of each attention weight; 0: they never exist as a whole
  std::int64_t probability = 1;  ///< of each probability over the vocabulary
};

/// Scores and probabilities are computed in float32 whatever is shorter.
Keeps KeepsOf(const Config& config, AttentionKeeps attention) {
  const bool is_short = config.run.precision == Precision::kBFloat16;
  const bool on_gpu = config.cluster.backend == Backend::kCuda;
  const bool fused = on_gpu || (is_short && attention == AttentionKeeps::kNothing);
  return {.weight = fused ? 0 : (is_short ? 2 : 1), .probability = is_short ? 2 : 1};
}

/// What is kept of a layer's row: all of it, all but the attention weights, or its input.
std::int64_t Kept(Recompute recompute, std::int64_t hidden, std::int64_t row,
                  std::int64_t weights) {
  if (recompute == Recompute::kFull) return hidden;
  return recompute == Recompute::kAttention ? row : row + weights;
}

/// What one rank computes on: samples of a microbatch, and a part in tp of the wide rows.
struct RankWork {
  std::int64_t samples = 0;
  int tp = 1;
  Keeps keeps;
};

/// Elements that the layers of a vision stage keep for their backward, with one image per sample:
/// of each layer two norm inputs and outputs, q k v, the attention weights, and the MLP's two wide
/// rows.
std::int64_t VitElements(const ModuleConfig& module, std::int64_t layers, const RankWork& work) {
  const VitConfig& vit = module.vit;
  const std::int64_t rows = vit.num_patches() + 1;
  const std::int64_t wide = CeilDivide(4 * vit.hidden + 2 * vit.mlp_hidden, work.tp);
  const std::int64_t weights = work.keeps.weight * CeilDivide(vit.heads, work.tp) * rows;
  return work.samples * rows * layers *
         Kept(module.recompute, vit.hidden, 4 * vit.hidden + wide, weights);
}

/// The same for a language stage of full samples; the gate makes the MLP three rows wide. `head`:
/// the last stage also keeps the probabilities over its part of the vocabulary.
std::int64_t LlamaElements(const ModuleConfig& module, std::int64_t layers, bool head,
                           const RankWork& work) {
  const LlamaConfig& llama = module.llama;
  const std::int64_t kv_width = 2 * llama.hidden / llama.heads * llama.kv_heads;
  const std::int64_t wide = CeilDivide(2 * llama.hidden + kv_width + 3 * llama.mlp_hidden, work.tp);
  const std::int64_t weights = work.keeps.weight * CeilDivide(llama.heads, work.tp) * llama.context;
  const std::int64_t row =
      layers * Kept(module.recompute, llama.hidden, 4 * llama.hidden + wide, weights) +
      (head ? 2 * llama.hidden + work.keeps.probability * CeilDivide(llama.vocab, work.tp) : 0);
  return work.samples * llama.context * row;
}

/// A projector keeps the encoder's rows and, of its wide rows, the inputs and outputs of the GELU.
std::int64_t ProjectorElements(const Config& config, const EdgeConfig& edge, const RankWork& work) {
  const ModuleConfig& from = FindModule(config, edge.from);
  return work.samples * from.vit.rows_per_image() *
         (HiddenSize(from) + 2 * CeilDivide(edge.through->hidden, work.tp));
}

std::int64_t ElementsOf(const Config& config, const StagePart& part, const RankWork& work) {
  if (part.edge) return ProjectorElements(config, *part.edge, work);
  const ModuleConfig& module = *part.module;
  const std::int64_t layers = SplitLayers(module)[static_cast<std::size_t>(part.pp)].size();
  return module.kind == ModuleKind::kVit
             ? VitElements(module, layers, work)
             : LlamaElements(module, layers, part.pp + 1 == module.num_stages(), work);
}

/// Nothing is kept of what stands before the first part that trains: no backward gets there.
std::int64_t ActivationElements(const Config& config, const ModuleConfig& module, int pp,
                                const Keeps& keeps) {
  if (module.kind == ModuleKind::kSynthetic) return 0;
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
    // The last rank's part is the largest of an uneven cut.
    const ParameterSlice slice = SliceOf(spec, own.layout.tp - 1, own.layout.tp);
    const std::size_t bytes = static_cast<std::size_t>(NumElements(slice.shape)) * element;
    memory.parameters += bytes;
    if (mixed) memory.rounded += bytes / 2;
    if (spec.frozen) continue;
    memory.gradients += bytes;
    memory.optimizer += 2 * bytes;
  }
  // Masters are for the update and leave with the moments; what forwards use is their copies.
  if (own.offload == Offload::kParameters) {
    memory.offloaded = mixed ? memory.rounded : memory.parameters;
  }
  if (own.offload == Offload::kState) memory.offloaded = memory.state();
  const std::int64_t kept = ActivationElements(config, own, pp, KeepsOf(config, attention));
  memory.activations = static_cast<std::size_t>(kept) * (mixed ? element / 2 : element);
  return memory;
}

}  // namespace troupe
