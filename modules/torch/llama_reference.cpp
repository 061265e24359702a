// B samples, T tokens of each, H hidden, D the width of a head.
#include <cmath>

#include "modules/torch/experts_reference.hpp"
#include "modules/torch/llama.hpp"

namespace troupe::reference {

using at::Tensor;

namespace {

Tensor RmsNorm(const Tensor& x, const Parameters& w, const std::string& name, double epsilon) {
  return x * at::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + epsilon) *
         w.at(name + ".weight").value;
}

/// The angle of one token for each pair of a head. Llama 3.1 leaves waves shorter than original /
/// high as they are, makes those longer than original / low `factor` times longer, and blends those
/// between by the share of the way.
Tensor Frequencies(std::int64_t half, const RotaryConfig& rope) {
  const Tensor plain =
      at::pow(rope.base, at::arange(half, at::kDouble) / -static_cast<double>(half));
  if (rope.scaling == RopeScaling::kNone) return plain;
  const Tensor longer = plain / rope.factor;
  if (rope.scaling == RopeScaling::kLinear) return longer;
  const Tensor wave = 2.0 * M_PI / plain;
  const auto original = static_cast<double>(rope.original_context);
  const Tensor share =
      (original / wave - rope.low_frequency) / (rope.high_frequency - rope.low_frequency);
  const Tensor blended = (1.0 - share) * longer + share * plain;
  return at::where(wave.gt(original / rope.low_frequency), longer,
                   at::where(wave.lt(original / rope.high_frequency), plain, blended));
}

/// x [B, heads, T, D]: turns element i of the first half against element i of the second by
/// Frequencies t times, t being the place among all tokens, those of images included.
Tensor Rotate(const Tensor& x, const RotaryConfig& rope) {
  const std::int64_t tokens = x.size(2);
  const std::int64_t half = x.size(3) / 2;
  // In double whatever the precision of the run: the angle of a late token keeps its fraction.
  const Tensor place = at::arange(tokens, at::kDouble).unsqueeze(1);
  const Tensor angle = place * Frequencies(half, rope);
  const Tensor cosine = at::cos(angle).to(x.scalar_type());
  const Tensor sine = at::sin(angle).to(x.scalar_type());
  const Tensor first = x.narrow(3, 0, half);
  const Tensor second = x.narrow(3, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, 3);
}

/// The sum of the input and of what attention adds.
Tensor AttentionHalf(const Tensor& input, const LlamaConfig& llama, const Parameters& w,
                     const std::string& layer) {
  const std::string attention = layer + ".self_attn";
  Tensor x = RmsNorm(input, w, layer + ".input_layernorm", llama.norm_epsilon);
  Tensor q = SplitHeads(Linear(x, w, attention + ".q_proj"), llama.heads);
  Tensor k = SplitHeads(Linear(x, w, attention + ".k_proj"), llama.kv_heads);
  Tensor v = SplitHeads(Linear(x, w, attention + ".v_proj"), llama.kv_heads);
  if (llama.head_norms) {
    q = RmsNorm(q, w, attention + ".q_norm", llama.norm_epsilon);
    k = RmsNorm(k, w, attention + ".k_norm", llama.norm_epsilon);
  }
  q = Rotate(q, llama.rope);
  // Each key and value head serves heads / kv_heads neighbouring query heads.
  k = Rotate(k, llama.rope).repeat_interleave(llama.heads / llama.kv_heads, 1);
  v = v.repeat_interleave(llama.heads / llama.kv_heads, 1);
  const std::int64_t tokens = input.size(1);
  const Tensor later = at::ones({tokens, tokens}, at::kBool).triu(1);
  return input + Linear(Attend(q, k, v, later), w, attention + ".o_proj");
}

}  // namespace

void AddLlama(const ModuleConfig& module, const Maker& make) {
  const auto& llama = module.As<LlamaConfig>();
  const std::string& name = module.name;
  const std::int64_t h = llama.hidden;
  if (!llama.head_dim && h % (2 * llama.heads) != 0) {
    Refuse(name + ": expected a hidden size that is a multiple of 2 x " +
           std::to_string(llama.heads) + " heads, got " + std::to_string(h));
  }
  const std::int64_t head = llama.head_dim.value_or(h / llama.heads);
  const bool bias = llama.attention_bias != AttentionBias::kNone;
  make.Embedding(name + ".embed_tokens.weight", {llama.vocab, h});
  for (std::int64_t i = 0; i < llama.layers; ++i) {
    const std::string layer = name + ".layers." + std::to_string(i);
    make.Norm(layer + ".input_layernorm", h, false);
    make.Linear(layer + ".self_attn.q_proj", llama.heads * head, h, bias);
    make.Linear(layer + ".self_attn.k_proj", llama.kv_heads * head, h, bias);
    make.Linear(layer + ".self_attn.v_proj", llama.kv_heads * head, h, bias);
    make.Linear(layer + ".self_attn.o_proj", h, llama.heads * head,
                llama.attention_bias == AttentionBias::kAll, 2 * llama.layers);
    if (llama.head_norms) {
      make.Norm(layer + ".self_attn.q_norm", head, false);
      make.Norm(layer + ".self_attn.k_norm", head, false);
    }
    make.Norm(layer + ".post_attention_layernorm", h, false);
    if (llama.experts.InLayer(i)) {
      AddExperts(llama.experts, layer + ".mlp", h, 2 * llama.layers, make);
      continue;
    }
    make.Linear(layer + ".mlp.gate_proj", llama.mlp_hidden, h, false);
    make.Linear(layer + ".mlp.up_proj", llama.mlp_hidden, h, false);
    make.Linear(layer + ".mlp.down_proj", h, llama.mlp_hidden, false, 2 * llama.layers);
  }
  make.Norm(name + ".norm", h, false);
  if (!llama.tied_head) make.Linear(name + ".lm_head", llama.vocab, h, false);
}

TextOutput LlamaLogits(const TextBatch& batch, const std::vector<Insertion>& insertions,
                       const ModuleConfig& module, const Parameters& w) {
  const Tensor& tokens = batch.tokens;
  const auto& llama = module.As<LlamaConfig>();
  const Tensor& embedding = w.at(module.name + ".embed_tokens.weight").value;
  Tensor x = embedding.index_select(0, tokens.flatten());
  for (const Insertion& insertion : insertions) {
    x = x.index_copy(0, insertion.positions, insertion.rows);
  }
  x = x.view({tokens.size(0), tokens.size(1), llama.hidden});
  RouterOutputs routers;
  for (std::int64_t i = 0; i < llama.layers; ++i) {
    const std::string layer = module.name + ".layers." + std::to_string(i);
    x = AttentionHalf(x, llama, w, layer);
    const Tensor in = RmsNorm(x, w, layer + ".post_attention_layernorm", llama.norm_epsilon);
    x = x + (llama.experts.InLayer(i) ? Experts(in, module, i, batch, w, routers)
                                      : GatedMlp(in, w, layer + ".mlp"));
  }
  x = RmsNorm(x, w, module.name + ".norm", llama.norm_epsilon).flatten(0, 1);
  const Tensor& head = llama.tied_head ? embedding : w.at(module.name + ".lm_head.weight").value;
  return {at::matmul(x, head.t()), RouterLoss(routers, module, batch)};
}

}  // namespace troupe::reference
