// CLIP-style vision transformer: class token, norm before the first layer, quick-GELU. Layers after
// the feature layer are not built.
#pragma once

#include "kinds/encoder_layers.hpp"

namespace troupe {

extern const ModuleKind kVit;

struct VitConfig : ModelOf<VitConfig, kVit> {
  std::int64_t image_size = 0;  ///< pixels, square
  std::int64_t patch_size = 0;  ///< pixels, divides image_size
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  /// Index into (embedding, layer 1, ..., layer n); -2 = last but one.
  std::int64_t feature_layer = -1;
  bool class_token = false;  ///< keeps the class token's row in the feature
  double norm_epsilon = 1e-5;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  std::int64_t rows_per_image() const { return num_patches() + (class_token ? 1 : 0); }
  /// Returns the number of layers that are built, up to the feature layer: [0, layers].
  std::int64_t built_layers() const {
    return feature_layer < 0 ? layers + 1 + feature_layer : feature_layer;
  }
  EncoderSizes sizes() const { return {hidden, heads, mlp_hidden, layers}; }

  void FillDefaults(const std::function<bool(const char* key)>& stated) override;
  void Check(ModuleCheck& check) const override;
  std::string WhyNotFrom(const ModelConfig& source) const override;
  std::unique_ptr<const Field> field() const override;
  std::int64_t rows_per_item() const override { return rows_per_image(); }
  std::int64_t row_width() const override { return hidden; }
  std::optional<Layers> split_layers() const override;
  ExtraCosts extra_costs() const override;
  bool AllowsTp(int tp) const override { return heads % tp == 0 && mlp_hidden % tp == 0; }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  void CountFlops(const StagePlace& stage, const StepShape& shape, const std::string& name,
                  FlopCounter& count) const override;
  std::int64_t KeptElements(const StagePlace& stage, const RankWork& work) const override;
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

}  // namespace troupe
