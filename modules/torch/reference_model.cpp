#include "modules/torch/reference_model.hpp"

#include <cmath>
#include <limits>

#include "modules/dropout.hpp"

namespace troupe::reference {

using at::Tensor;

/// x [sequences, rows, features], with some of its numbers replaced by 0.
static Tensor DropInputs(const Tensor& x, const Dropout& dropout, const std::string& adapter) {
  if (x.dim() != 3 || x.size(0) != std::ssize(dropout.sequences)) {
    Refuse(adapter + ": dropout of " + std::to_string(dropout.sequences.size()) +
           " sequences, its inputs are " + ToString(x.sizes().vec()));
  }
  std::vector<std::uint32_t> features;
  for (std::int64_t i = 0; i < x.size(2); ++i) features.push_back(DropoutFeature(adapter, i));
  const Tensor factors = at::empty(x.sizes(), at::kDouble);
  auto* next = factors.data_ptr<double>();
  for (const Dropout::Sequence& sequence : dropout.sequences) {
    for (std::int64_t row = 0; row < x.size(1); ++row) {
      const std::uint32_t own = DropoutRow(dropout.seed, dropout.step, sequence.sample,
                                           sequence.number * x.size(1) + row);
      for (const std::uint32_t feature : features) {
        const bool drops = IsDropped(own, feature, dropout.share);
        *next++ = drops ? 0.0 : 1.0 / (1.0 - dropout.share);
      }
    }
  }
  return x * factors.to(x.scalar_type());
}

Tensor Linear(const Tensor& x, const Parameters& w, const std::string& name) {
  const auto bias = w.find(name + ".bias");
  Tensor y = at::matmul(x, w.at(name + ".weight").value.t());
  if (bias != w.end()) y = y + bias->second.value;
  const auto a = w.find(name + ".lora_A.weight");
  if (a == w.end()) return y;
  const Parameter& first = a->second;
  const Tensor in = first.dropout ? DropInputs(x, *first.dropout, a->first) : x;
  const Tensor few = at::matmul(in, first.value.t());
  return y + first.scale * at::matmul(few, w.at(name + ".lora_B.weight").value.t());
}

Tensor LayerNorm(const Tensor& x, const Parameters& w, const std::string& name, double epsilon) {
  return at::layer_norm(x, {x.size(-1)}, w.at(name + ".weight").value, w.at(name + ".bias").value,
                        epsilon);
}

Tensor GatedMlp(const Tensor& x, const Parameters& w, const std::string& name) {
  const Tensor wide = at::silu(Linear(x, w, name + ".gate_proj")) * Linear(x, w, name + ".up_proj");
  return Linear(wide, w, name + ".down_proj");
}

Tensor SplitHeads(const Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor Attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& masked) {
  Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  if (masked.defined()) {
    scores = scores.masked_fill(masked, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), v).transpose(1, 2).flatten(2);
}

/// The three GELUs of arXiv:1606.08415, section 2; CLIP was trained with the first.
static Tensor Activate(const Tensor& x, MlpActivation activation) {
  if (activation == MlpActivation::kQuickGelu) return x * at::sigmoid(1.702 * x);
  if (activation == MlpActivation::kGelu) return 0.5 * x * (1.0 + at::erf(x * std::sqrt(0.5)));
  return 0.5 * x * (1.0 + at::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x.pow(3))));
}

static Tensor EncoderLayer(const Tensor& input, const PatchEncoder& encoder, const Parameters& w,
                           const std::string& layer) {
  const std::string attention = layer + ".self_attn";
  Tensor x = LayerNorm(input, w, layer + ".layer_norm1", encoder.norm_epsilon);
  const Tensor q = SplitHeads(Linear(x, w, attention + ".q_proj"), encoder.heads);
  const Tensor k = SplitHeads(Linear(x, w, attention + ".k_proj"), encoder.heads);
  const Tensor v = SplitHeads(Linear(x, w, attention + ".v_proj"), encoder.heads);
  const Tensor middle = input + Linear(Attend(q, k, v, /*masked=*/{}), w, attention + ".out_proj");
  x = LayerNorm(middle, w, layer + ".layer_norm2", encoder.norm_epsilon);
  x = Activate(Linear(x, w, layer + ".mlp.fc1"), encoder.activation);
  return middle + Linear(x, w, layer + ".mlp.fc2");
}

Tensor EncoderLayers(Tensor x, const ModuleConfig& module, const Parameters& w) {
  const auto& encoder = module.As<PatchEncoder>();
  for (std::int64_t i = 0; i < encoder.built_layers(); ++i) {
    x = EncoderLayer(x, encoder, w, module.name + ".encoder.layers." + std::to_string(i));
  }
  if (!encoder.final_norm) return x;
  return LayerNorm(x, w, module.name + ".post_layernorm", encoder.norm_epsilon);
}

/// InternVL's pixel shuffle (arXiv:2312.14238), patch by patch.
Tensor JoinSquares(const Tensor& x, const PatchEncoder& encoder) {
  const std::int64_t side = encoder.joined;
  if (side == 1) return x;
  const std::int64_t grid = encoder.image_size / encoder.patch_size;
  std::vector<Tensor> joined;
  for (std::int64_t row = 0; row < grid; row += side) {
    for (std::int64_t column = 0; column < grid; column += side) {
      std::vector<Tensor> square;
      for (std::int64_t i = 0; i < side * side; ++i) {
        square.push_back(x.select(1, (row + i / side) * grid + column + i % side));
      }
      joined.push_back(at::cat(square, 1));
    }
  }
  return at::stack(joined, 1);
}

Tensor Project(const Tensor& rows, const EdgeConfig& edge, const Parameters& w) {
  const std::string name = reference::ProjectorName(edge);  // not that of plan/
  const ProjectorKind kind = edge.through->kind;
  if (kind == ProjectorKind::kLinear) return Linear(rows, w, name + ".linear");
  const bool norm = kind == ProjectorKind::kPixelShuffle;
  const Tensor x = norm ? LayerNorm(rows, w, name + ".layer_norm", 1e-5) : rows;
  return Linear(at::gelu(Linear(x, w, name + ".linear_1")), w, name + ".linear_2");
}

}  // namespace troupe::reference
