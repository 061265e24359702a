// n images, P patches, H hidden.
#include <cmath>

#include "kinds/vit.hpp"
#include "modules/torch/vit.hpp"

namespace troupe::reference {

using at::Tensor;

void AddVit(const ModuleConfig& module, const Maker& make) {
  const auto& vit = module.As<VitConfig>();
  const std::int64_t h = vit.hidden;
  const std::int64_t p = vit.patch_size;
  const std::string embeddings = module.name + ".embeddings";
  make.Embedding(embeddings + ".class_embedding", {h}, {Trait::kClassEmbedding});
  make.Normal(embeddings + ".patch_embedding.weight", {h, 3, p, p},
              1.0 / std::sqrt(static_cast<double>(3 * p * p)));
  make.Embedding(embeddings + ".position_embedding.weight", {vit.num_patches() + 1, h});
  make.Norm(module.name + ".pre_layrnorm", h, true);
  make.EncoderLayers(module);
}

Tensor EncodeVit(const FieldTensors& items, const ModuleConfig& module, const Parameters& w) {
  const auto& vit = module.As<VitConfig>();
  const std::string embeddings = module.name + ".embeddings";
  const Tensor patches =
      at::conv2d(items.values, w.at(embeddings + ".patch_embedding.weight").value, /*bias=*/{},
                 vit.patch_size)
          .flatten(2)
          .transpose(1, 2);  // [n, P, H]
  const Tensor class_row =
      w.at(embeddings + ".class_embedding").value.expand({patches.size(0), 1, vit.hidden});
  Tensor x =
      at::cat({class_row, patches}, 1) + w.at(embeddings + ".position_embedding.weight").value;
  x = LayerNorm(x, w, module.name + ".pre_layrnorm", vit.norm_epsilon);
  x = EncoderLayers(x, module, w);
  if (!vit.class_token) x = x.narrow(1, 1, vit.num_patches());
  return JoinSquares(x, vit).flatten(0, 1);
}

}  // namespace troupe::reference
