#include "modules/torch/reference_model.hpp"

#include <cmath>
#include <limits>

namespace troupe::reference {

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

Tensor EncoderLayer(const Tensor& input, const EncoderSizes& sizes, double epsilon,
                    Tensor (*activation)(const Tensor&), const Parameters& w,
                    const std::string& prefix) {
  const std::string attention = prefix + ".self_attn";
  Tensor x = LayerNorm(input, w, prefix + ".layer_norm1", epsilon);
  const Tensor q = SplitHeads(Linear(x, w, attention + ".q_proj"), sizes.heads);
  const Tensor k = SplitHeads(Linear(x, w, attention + ".k_proj"), sizes.heads);
  const Tensor v = SplitHeads(Linear(x, w, attention + ".v_proj"), sizes.heads);
  const Tensor middle = input + Linear(Attend(q, k, v, /*masked=*/{}), w, attention + ".out_proj");
  x = LayerNorm(middle, w, prefix + ".layer_norm2", epsilon);
  x = activation(Linear(x, w, prefix + ".mlp.fc1"));
  return middle + Linear(x, w, prefix + ".mlp.fc2");
}

Tensor Project(const Tensor& rows, const EdgeConfig& edge, const Parameters& w) {
  const std::string name = reference::ProjectorName(edge);  // not that of plan/
  return Linear(at::gelu(Linear(rows, w, name + ".linear_1")), w, name + ".linear_2");
}

}  // namespace troupe::reference
