#include "kinds/encoder_layers.hpp"

namespace troupe {

void AddEncoderLayer(const EncoderSizes& sizes, const std::string& prefix, ParameterList& list) {
  const std::int64_t hidden = sizes.hidden;
  // The residual stream sums 2 * layers branches, whose last linears share its variance.
  const double residual = InverseRoot(2 * sizes.layers);
  const std::string attention = prefix + ".self_attn.";
  list.AddLayerNorm(prefix + ".layer_norm1", hidden);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    list.AddWeight(attention + name, hidden, hidden, Cut::kRows);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    list.Add(attention + name + ".bias", {hidden}, Cut::kRows);
  }
  list.AddWeight(attention + "out_proj", hidden, hidden, Cut::kColumns, residual);
  list.Add(attention + "out_proj.bias", {hidden});
  list.AddLayerNorm(prefix + ".layer_norm2", hidden);
  list.AddWeight(prefix + ".mlp.fc1", sizes.mlp_hidden, hidden, Cut::kRows);
  list.Add(prefix + ".mlp.fc1.bias", {sizes.mlp_hidden}, Cut::kRows);
  list.AddWeight(prefix + ".mlp.fc2", hidden, sizes.mlp_hidden, Cut::kColumns, residual);
  list.Add(prefix + ".mlp.fc2.bias", {hidden});
}

void CountEncoderLayers(const EncoderSizes& sizes, std::int64_t layers, std::int64_t sequences,
                        std::int64_t length, FlopCounter& count) {
  const std::int64_t rows = sequences * length;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    count.AddLinear(rows, 4 * sizes.hidden, sizes.hidden);  // q, k, v, out
    count.AddLinear(rows, 2 * sizes.mlp_hidden, sizes.hidden);
    count.AddAttention(Product(rows, length), sizes.hidden);
  }
}

std::int64_t KeptOfEncoderLayers(const EncoderSizes& sizes, std::int64_t layers,
                                 std::int64_t length, const RankWork& work) {
  const std::int64_t wide = CeilDivide(4 * sizes.hidden + 2 * sizes.mlp_hidden, work.tp);
  const std::int64_t weights = work.keeps.weight * CeilDivide(sizes.heads, work.tp) * length;
  return work.samples * length * layers *
         work.KeptOfRow(sizes.hidden, 4 * sizes.hidden + wide, weights);
}

void CheckEncoderSizes(const EncoderSizes& sizes, ModuleCheck& check) {
  const Named heads = check.Own("heads", sizes.heads);
  check.ExpectMultiple(check.Own("hidden", sizes.hidden), heads);
  check.ExpectMultiple(heads, check.tp());
  check.ExpectMultiple(check.Own("mlp_hidden", sizes.mlp_hidden), check.tp());
}

ExtraCosts EmbeddingCost(const EncoderSizes& sizes, std::int64_t inputs) {
  const auto hidden = static_cast<double>(sizes.hidden);
  const double layer = 4.0 * hidden * hidden + 2.0 * hidden * static_cast<double>(sizes.mlp_hidden);
  return {.first = static_cast<double>(inputs) * hidden / layer, .last = 0.0};
}

}  // namespace troupe
