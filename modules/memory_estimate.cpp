#include "modules/memory_estimate.hpp"

#include <cstdint>

#include "modules/freezing.hpp"
#include "modules/layer_split.hpp"
#include "modules/parameters.hpp"

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
  const bool on_gpu = config.cluster.backend == "cuda";
  const bool fused = on_gpu || (is_short && attention == AttentionKeeps::kNothing);
  return {.weight = fused ? 0 : (is_short ? 2 : 1), .probability = is_short ? 2 : 1};
}

/// What is kept of a layer's row: all of it, all but the attention weights, or its input.
std::int64_t Kept(Recompute recompute, std::int64_t hidden, std::int64_t row,
                  std::int64_t weights) {
  if (recompute == Recompute::kFull) return hidden;
  return recompute == Recompute::kAttention ? row : row + weights;
}

/// Elements that the layers of a vision stage keep for the backward pass of `images` images: of
/// each layer two norm inputs and outputs, q k v, the attention weights, and the MLP's two wide
/// rows.
std::int64_t VitElements(const ModuleConfig& module, std::int64_t layers, int tp,
                         std::int64_t images, const Keeps& keeps) {
  const VitConfig& vit = module.vit;
  const std::int64_t rows = vit.num_patches() + 1;
  const std::int64_t wide = CeilDivide(4 * vit.hidden + 2 * vit.mlp_hidden, tp);
  const std::int64_t weights = keeps.weight * CeilDivide(vit.heads, tp) * rows;
  return images * rows * layers *
         Kept(module.recompute, vit.hidden, 4 * vit.hidden + wide, weights);
}

/// The same for a language stage of `samples` full samples; the gate makes the MLP three rows wide.
/// `head`: the last stage also keeps the probabilities over its part of the vocabulary.
std::int64_t LlamaElements(const ModuleConfig& module, std::int64_t layers, int tp,
                           std::int64_t samples, bool head, const Keeps& keeps) {
  const LlamaConfig& llama = module.llama;
  const std::int64_t kv_width = 2 * llama.hidden / llama.heads * llama.kv_heads;
  const std::int64_t wide = CeilDivide(2 * llama.hidden + kv_width + 3 * llama.mlp_hidden, tp);
  const std::int64_t weights = keeps.weight * CeilDivide(llama.heads, tp) * llama.context;
  const std::int64_t row =
      layers * Kept(module.recompute, llama.hidden, 4 * llama.hidden + wide, weights) +
      (head ? 2 * llama.hidden + keeps.probability * CeilDivide(llama.vocab, tp) : 0);
  return samples * llama.context * row;
}

std::int64_t ActivationElements(const Config& config, const ModuleConfig& module, int pp,
                                const Keeps& keeps) {
  const std::int64_t layers = SplitLayers(module)[static_cast<std::size_t>(pp)].size();
  const std::int64_t samples =
      CeilDivide(config.samples_per_microbatch(), static_cast<std::int64_t>(module.layout.dp));
  const int tp = module.layout.tp;
  if (module.kind == ModuleKind::kVit) return VitElements(module, layers, tp, samples, keeps);
  if (module.kind != ModuleKind::kLlama) return 0;
  std::int64_t elements =
      LlamaElements(module, layers, tp, samples, pp + 1 == module.num_stages(), keeps);
  if (pp > 0) return elements;
  for (const EdgeConfig* edge : InlineEdges(config, module.name)) {
    const ModuleConfig& encoder = FindModule(config, edge->from);
    elements += VitElements(encoder, encoder.vit.built_layers(), tp, samples, keeps);
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
  if (RunsBackward(config, module, pp)) {
    const std::int64_t elements = ActivationElements(config, own, pp, KeepsOf(config, attention));
    memory.activations = static_cast<std::size_t>(elements) * (mixed ? element / 2 : element);
  }
  return memory;
}

}  // namespace troupe
