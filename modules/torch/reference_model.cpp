// n images or samples, T rows or tokens of each, P patches, H hidden, D = H / heads.
#include "modules/torch/reference_model.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace troupe::reference {
namespace {

using at::Tensor;

Tensor Linear(const Tensor& x, const Parameters& w, const std::string& name) {
  const auto bias = w.find(name + ".bias");
  const Tensor y = at::matmul(x, w.at(name + ".weight").value.t());
  return bias == w.end() ? y : y + bias->second.value;
}

Tensor LayerNorm(const Tensor& x, const Parameters& w, const std::string& name, double epsilon) {
  return at::layer_norm(x, {x.size(-1)}, w.at(name + ".weight").value, w.at(name + ".bias").value,
                        epsilon);
}

Tensor RmsNorm(const Tensor& x, const Parameters& w, const std::string& name, double epsilon) {
  return x * at::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + epsilon) *
         w.at(name + ".weight").value;
}

/// [n, T, heads * D] -> [n, heads, T, D]
Tensor SplitHeads(const Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

/// q, k, v [n, heads, T, D] -> [n, T, heads * D]; a masked pair of positions has no weight.
Tensor Attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& masked) {
  Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  if (masked.defined()) {
    scores = scores.masked_fill(masked, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), v).transpose(1, 2).flatten(2);
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

Tensor VitLayer(const Tensor& input, const VitConfig& vit, const Parameters& w,
                const std::string& layer) {
  const std::string attention = layer + ".self_attn";
  Tensor x = LayerNorm(input, w, layer + ".layer_norm1", vit.norm_epsilon);
  const Tensor q = SplitHeads(Linear(x, w, attention + ".q_proj"), vit.heads);
  const Tensor k = SplitHeads(Linear(x, w, attention + ".k_proj"), vit.heads);
  const Tensor v = SplitHeads(Linear(x, w, attention + ".v_proj"), vit.heads);
  const Tensor middle = input + Linear(Attend(q, k, v, /*masked=*/{}), w, attention + ".out_proj");
  x = LayerNorm(middle, w, layer + ".layer_norm2", vit.norm_epsilon);
  x = Linear(x, w, layer + ".mlp.fc1");
  x = x * at::sigmoid(1.702 * x);  // "quick" GELU, as CLIP was trained
  return middle + Linear(x, w, layer + ".mlp.fc2");
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

Tensor Vit(const Tensor& images, const ModuleConfig& module, const Parameters& w) {
  const VitConfig& vit = module.vit;
  const std::string embeddings = module.name + ".embeddings";
  const Tensor patches = at::conv2d(images, w.at(embeddings + ".patch_embedding.weight").value,
                                    /*bias=*/{}, vit.patch_size)
                             .flatten(2)
                             .transpose(1, 2);  // [n, P, H]
  const Tensor class_row =
      w.at(embeddings + ".class_embedding").value.expand({images.size(0), 1, vit.hidden});
  Tensor x =
      at::cat({class_row, patches}, 1) + w.at(embeddings + ".position_embedding.weight").value;
  x = LayerNorm(x, w, module.name + ".pre_layrnorm", vit.norm_epsilon);
  for (std::int64_t i = 0; i < vit.built_layers(); ++i) {
    x = VitLayer(x, vit, w, module.name + ".encoder.layers." + std::to_string(i));
  }
  if (!vit.class_token) x = x.narrow(1, 1, vit.num_patches());
  return x.flatten(0, 1);
}

Tensor Project(const Tensor& rows, const EdgeConfig& edge, const Parameters& w) {
  const std::string name = reference::ProjectorName(edge);
  return Linear(at::gelu(Linear(rows, w, name + ".linear_1")), w, name + ".linear_2");
}

Tensor Llama(const Tensor& tokens, const std::vector<Insertion>& insertions,
             const ModuleConfig& module, const Parameters& w) {
  const LlamaConfig& llama = module.llama;
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
