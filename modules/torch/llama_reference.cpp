// B samples, T tokens of each, H hidden, D = H / heads.
#include <cmath>

#include "modules/torch/llama.hpp"

namespace troupe::reference {

using at::Tensor;

namespace {

Tensor RmsNorm(const Tensor& x, const Parameters& w, const std::string& name, double epsilon) {
  return x * at::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + epsilon) *
         w.at(name + ".weight").value;
}

/// x [B, heads, T, D]: turns element i of the first half against element i of the second by the
/// angle t * base^(-2i / D), t being the place among all tokens, those of images included.
Tensor Rotate(const Tensor& x, double base) {
  const std::int64_t tokens = x.size(2);
  const std::int64_t half = x.size(3) / 2;
  // In double whatever the precision of the run: the angle of a late token keeps its fraction.
  const Tensor place = at::arange(tokens, at::kDouble).unsqueeze(1);
  const Tensor angle =
      place * at::pow(base, at::arange(half, at::kDouble) / -static_cast<double>(half));
  const Tensor cosine = at::cos(angle).to(x.scalar_type());
  const Tensor sine = at::sin(angle).to(x.scalar_type());
  const Tensor first = x.narrow(3, 0, half);
  const Tensor second = x.narrow(3, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, 3);
}

Tensor LlamaLayer(const Tensor& input, const LlamaConfig& llama, const Parameters& w,
                  const std::string& layer) {
  const std::string attention = layer + ".self_attn";
  Tensor x = RmsNorm(input, w, layer + ".input_layernorm", llama.norm_epsilon);
  Tensor q = SplitHeads(Linear(x, w, attention + ".q_proj"), llama.heads);
  Tensor k = SplitHeads(Linear(x, w, attention + ".k_proj"), llama.kv_heads);
  Tensor v = SplitHeads(Linear(x, w, attention + ".v_proj"), llama.kv_heads);
  q = Rotate(q, llama.rope_base);
  // Each key and value head serves heads / kv_heads neighbouring query heads.
  k = Rotate(k, llama.rope_base).repeat_interleave(llama.heads / llama.kv_heads, 1);
  v = v.repeat_interleave(llama.heads / llama.kv_heads, 1);
  const std::int64_t tokens = input.size(1);
  const Tensor later = at::ones({tokens, tokens}, at::kBool).triu(1);
  const Tensor middle = input + Linear(Attend(q, k, v, later), w, attention + ".o_proj");
  x = RmsNorm(middle, w, layer + ".post_attention_layernorm", llama.norm_epsilon);
  x = at::silu(Linear(x, w, layer + ".mlp.gate_proj")) * Linear(x, w, layer + ".mlp.up_proj");
  return middle + Linear(x, w, layer + ".mlp.down_proj");
}

}  // namespace

void AddLlama(const ModuleConfig& module, const Maker& make) {
  const auto& llama = module.As<LlamaConfig>();
  const std::string& name = module.name;
  const std::int64_t h = llama.hidden;
  if (h % (2 * llama.heads) != 0) {
    Refuse(name + ": expected a hidden size that is a multiple of 2 x " +
           std::to_string(llama.heads) + " heads, got " + std::to_string(h));
  }
  const std::int64_t kv = h / llama.heads * llama.kv_heads;
  make.Embedding(name + ".embed_tokens.weight", {llama.vocab, h});
  for (std::int64_t i = 0; i < llama.layers; ++i) {
    const std::string layer = name + ".layers." + std::to_string(i);
    make.Norm(layer + ".input_layernorm", h, false);
    make.Linear(layer + ".self_attn.q_proj", h, h, false);
    make.Linear(layer + ".self_attn.k_proj", kv, h, false);
    make.Linear(layer + ".self_attn.v_proj", kv, h, false);
    make.Linear(layer + ".self_attn.o_proj", h, h, false, 2 * llama.layers);
    make.Norm(layer + ".post_attention_layernorm", h, false);
    make.Linear(layer + ".mlp.gate_proj", llama.mlp_hidden, h, false);
    make.Linear(layer + ".mlp.up_proj", llama.mlp_hidden, h, false);
    make.Linear(layer + ".mlp.down_proj", h, llama.mlp_hidden, false, 2 * llama.layers);
  }
  make.Norm(name + ".norm", h, false);
  if (!llama.tied_head) make.Linear(name + ".lm_head", llama.vocab, h, false);
}

Tensor LlamaLogits(const Tensor& tokens, const std::vector<Insertion>& insertions,
                   const ModuleConfig& module, const Parameters& w) {
  const auto& llama = module.As<LlamaConfig>();
  const Tensor& embedding = w.at(module.name + ".embed_tokens.weight").value;
  Tensor x = embedding.index_select(0, tokens.flatten());
  for (const Insertion& insertion : insertions) {
    x = x.index_copy(0, insertion.positions, insertion.rows);
  }
  x = x.view({tokens.size(0), tokens.size(1), llama.hidden});
  for (std::int64_t i = 0; i < llama.layers; ++i) {
    x = LlamaLayer(x, llama, w, module.name + ".layers." + std::to_string(i));
  }
  x = RmsNorm(x, w, module.name + ".norm", llama.norm_epsilon).flatten(0, 1);
  return at::matmul(
      x, (llama.tied_head ? embedding : w.at(module.name + ".lm_head.weight").value).t());
}

}  // namespace troupe::reference
