// CLIP-style vision transformer: class token, norm before the first layer.
#pragma once

#include "kinds/patch_encoder.hpp"

namespace troupe {

extern const ModuleKind kVit;

struct VitConfig : ModelOf<VitConfig, kVit, PatchEncoder> {
  VitConfig() { image_recipe = kClipImages; }

  bool class_token = false;  ///< keeps the class token's row in the feature

  std::int64_t sequence_length() const override { return num_patches() + 1; }

  void Check(ModuleCheck& check) const override;
  std::int64_t rows_per_square() const override {
    return PatchEncoder::rows_per_square() + (class_token ? 1 : 0);
  }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

}  // namespace troupe
