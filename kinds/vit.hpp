// CLIP-style vision transformer: class token, norm before the first layer, quick-GELU. Layers after
// the feature layer are not built.
#pragma once

#include "kinds/patch_encoder.hpp"

namespace troupe {

extern const ModuleKind kVit;

struct VitConfig : ModelOf<VitConfig, kVit, PatchEncoder> {
  /// Index into (embedding, layer 1, ..., layer n); -2 = last but one.
  std::int64_t feature_layer = -1;
  bool class_token = false;  ///< keeps the class token's row in the feature

  /// Returns the number of layers that are built, up to the feature layer: [0, layers].
  std::int64_t built_layers() const {
    return feature_layer < 0 ? layers + 1 + feature_layer : feature_layer;
  }
  std::int64_t sequence_length() const override { return num_patches() + 1; }

  void Check(ModuleCheck& check) const override;
  std::unique_ptr<const Field> field() const override;
  std::int64_t rows_per_item() const override { return num_patches() + (class_token ? 1 : 0); }
  std::optional<Layers> split_layers() const override {
    return Layers{built_layers(), "up to feature_layer"};
  }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

}  // namespace troupe
