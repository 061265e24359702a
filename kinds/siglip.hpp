// SigLIP-style vision transformer: no class token, no norm before the first layer, a patch embedding
// with a bias; by default GELU by tanh and a norm after the last layer.
// Source: Zhai et al. 2023, arXiv:2303.15343; names as in transformers' SiglipVisionModel.
#pragma once

#include "kinds/patch_encoder.hpp"

namespace troupe {

extern const ModuleKind kSiglip;

struct SiglipConfig : ModelOf<SiglipConfig, kSiglip, PatchEncoder> {
  SiglipConfig() {
    norm_epsilon = 1e-6;
    activation = MlpActivation::kGeluTanh;
    final_norm = true;
    image_recipe = kCentredImages;
  }

  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  friend bool operator==(const SiglipConfig&, const SiglipConfig&) = default;
};

}  // namespace troupe
