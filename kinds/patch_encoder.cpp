#include "kinds/patch_encoder.hpp"

namespace troupe {

std::vector<ModelKey> PatchEncoderKeys(std::vector<ModelKey> own) {
  std::vector<ModelKey> keys = {
      {"image_size", &PatchEncoder::image_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of its images."},
      {"patch_size", &PatchEncoder::patch_size, kRequired, kCount, Unit{"pixels"},
       "Width and height of a patch; divides image_size."},
      {"hidden", &PatchEncoder::hidden, kRequired, kCount, "Width of a row; a multiple of heads."},
      {"layers", &PatchEncoder::layers, kRequired, kLayers, Unit{"layers"}, "Transformer layers."},
      {"heads", &PatchEncoder::heads, kRequired, kCount, "Attention heads; a multiple of tp."},
      {"mlp_hidden", &PatchEncoder::mlp_hidden, kCount, Otherwise{"4 * hidden"},
       "Width inside the MLP; a multiple of tp."},
      {"norm_epsilon", &PatchEncoder::norm_epsilon, kPositive,
       "Added to the variance in LayerNorm."},
  };
  keys.insert(keys.end() - 1, own.begin(), own.end());
  return keys;
}

void PatchEncoder::FillDefaults(const std::function<bool(const char* key)>& stated) {
  if (!stated("mlp_hidden")) mlp_hidden = 4 * hidden;
}

void PatchEncoder::Check(ModuleCheck& check) const {
  const Named own_heads = check.Own("heads", heads);
  check.ExpectMultiple(check.Own("image_size", image_size), check.Own("patch_size", patch_size));
  check.ExpectMultiple(check.Own("hidden", hidden), own_heads);
  check.ExpectMultiple(own_heads, check.tp());
  check.ExpectMultiple(check.Own("mlp_hidden", mlp_hidden), check.tp());
}

std::string PatchEncoder::WhyNotFrom(const ModelConfig&) const {
  return "reads images; expected a module that takes rows";
}

ExtraCosts PatchEncoder::extra_costs() const {
  const auto h = static_cast<double>(hidden);
  const double layer = 4.0 * h * h + 2.0 * h * static_cast<double>(mlp_hidden);
  return {.first = static_cast<double>(3 * patch_size * patch_size) * h / layer, .last = 0.0};
}

void PatchEncoder::AddPatchWeight(ParameterList& list) const {
  list.AddNormal("embeddings.patch_embedding.weight", {hidden, 3, patch_size, patch_size},
                 InverseRoot(3 * patch_size * patch_size));
}

void PatchEncoder::AddPositions(std::int64_t number, ParameterList& list) const {
  list.AddNormal("embeddings.position_embedding.weight", {number, hidden}, InverseRoot(hidden));
}

void PatchEncoder::AddParameters(const StagePlace& stage, ParameterList& list) const {
  // The residual stream sums 2 * layers branches, whose last linears share its variance.
  const double residual = InverseRoot(2 * layers);
  for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    const std::string prefix = "encoder.layers." + std::to_string(layer);
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
    list.AddWeight(prefix + ".mlp.fc1", mlp_hidden, hidden, Cut::kRows);
    list.Add(prefix + ".mlp.fc1.bias", {mlp_hidden}, Cut::kRows);
    list.AddWeight(prefix + ".mlp.fc2", hidden, mlp_hidden, Cut::kColumns, residual);
    list.Add(prefix + ".mlp.fc2.bias", {hidden});
  }
}

void PatchEncoder::CountFlops(const StagePlace& stage, const StepShape& shape,
                              const std::string& name, FlopCounter& count) const {
  const auto items = shape.items.find(name);
  const std::int64_t images = items == shape.items.end() ? 0 : items->second;
  if (stage.first) {
    count.AddLinear(images * num_patches(), hidden, 3 * patch_size * patch_size, /*first=*/true);
  }
  const std::int64_t rows = images * sequence_length();
  for (std::int64_t layer = 0; layer < stage.layers.size(); ++layer) {
    count.AddLinear(rows, 4 * hidden, hidden);  // q, k, v, out
    count.AddLinear(rows, 2 * mlp_hidden, hidden);
    count.AddAttention(Product(rows, sequence_length()), hidden);
  }
}

std::int64_t PatchEncoder::KeptElements(const StagePlace& stage, const RankWork& work) const {
  const std::int64_t wide = CeilDivide(4 * hidden + 2 * mlp_hidden, work.tp);
  const std::int64_t weights = work.keeps.weight * CeilDivide(heads, work.tp) * sequence_length();
  return work.samples * sequence_length() * stage.layers.size() *
         work.KeptOfRow(hidden, 4 * hidden + wide, weights);
}

}  // namespace troupe
