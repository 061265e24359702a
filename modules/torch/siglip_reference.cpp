// n images, P patches, H hidden.
#include <cmath>

#include "kinds/siglip.hpp"
#include "modules/torch/reference_model.hpp"
#include "modules/torch/siglip.hpp"

namespace troupe::reference {

using at::Tensor;

void AddSiglip(const ModuleConfig& module, const Maker& make) {
  const auto& siglip = module.As<SiglipConfig>();
  const std::int64_t h = siglip.hidden;
  const std::int64_t p = siglip.patch_size;
  const std::string embeddings = module.name + ".embeddings";
  make.Normal(embeddings + ".patch_embedding.weight", {h, 3, p, p},
              1.0 / std::sqrt(static_cast<double>(3 * p * p)));
  make.Add(embeddings + ".patch_embedding.bias", {Trait::kBias}, at::zeros({h}, at::kDouble));
  make.Embedding(embeddings + ".position_embedding.weight", {siglip.num_patches(), h});
  make.EncoderLayers(module);
}

Tensor EncodeSiglip(const FieldTensors& items, const ModuleConfig& module, const Parameters& w) {
  const auto& siglip = module.As<SiglipConfig>();
  const std::string embeddings = module.name + ".embeddings";
  const Tensor patches =
      at::conv2d(items.values, w.at(embeddings + ".patch_embedding.weight").value,
                 w.at(embeddings + ".patch_embedding.bias").value, siglip.patch_size)
          .flatten(2)
          .transpose(1, 2);  // [n, P, H]
  const Tensor x = patches + w.at(embeddings + ".position_embedding.weight").value;
  return JoinSquares(EncoderLayers(x, module, w), siglip).flatten(0, 1);
}

}  // namespace troupe::reference
