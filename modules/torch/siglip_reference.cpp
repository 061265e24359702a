// n images, P patches, H hidden.
#include <cmath>

#include "kinds/siglip.hpp"
#include "modules/torch/reference_model.hpp"
#include "modules/torch/siglip.hpp"

namespace troupe::reference {

using at::Tensor;

/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): arXiv:1606.08415, section 2.
static Tensor GeluByTanh(const Tensor& x) {
  return 0.5 * x * (1.0 + at::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x.pow(3))));
}

void AddSiglip(const ModuleConfig& module, const Maker& make) {
  const auto& siglip = module.As<SiglipConfig>();
  const std::int64_t h = siglip.hidden;
  const std::int64_t p = siglip.patch_size;
  const std::string embeddings = module.name + ".embeddings";
  make.Normal(embeddings + ".patch_embedding.weight", {h, 3, p, p},
              1.0 / std::sqrt(static_cast<double>(3 * p * p)));
  make.Add(embeddings + ".patch_embedding.bias", at::zeros({h}, at::kDouble));
  make.Embedding(embeddings + ".position_embedding.weight", {siglip.num_patches(), h});
  for (std::int64_t i = 0; i < siglip.layers; ++i) {
    make.EncoderLayer(module.name + ".encoder.layers." + std::to_string(i), siglip.sizes());
  }
  make.Norm(module.name + ".post_layernorm", h, true);
}

Tensor EncodeSiglip(const FieldTensors& items, const ModuleConfig& module, const Parameters& w) {
  const auto& siglip = module.As<SiglipConfig>();
  const std::string embeddings = module.name + ".embeddings";
  const Tensor patches =
      at::conv2d(items.values, w.at(embeddings + ".patch_embedding.weight").value,
                 w.at(embeddings + ".patch_embedding.bias").value, siglip.patch_size)
          .flatten(2)
          .transpose(1, 2);  // [n, P, H]
  Tensor x = patches + w.at(embeddings + ".position_embedding.weight").value;
  for (std::int64_t i = 0; i < siglip.layers; ++i) {
    x = EncoderLayer(x, siglip.sizes(), siglip.norm_epsilon, GeluByTanh, w,
                     module.name + ".encoder.layers." + std::to_string(i));
  }
  return LayerNorm(x, w, module.name + ".post_layernorm", siglip.norm_epsilon).flatten(0, 1);
}

}  // namespace troupe::reference
