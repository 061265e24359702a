// SigLIP-style vision transformer: no class token, no norm before the first layer, a patch embedding
// with a bias, GELU by tanh, and a norm after the last layer.
// Source: Zhai et al. 2023, arXiv:2303.15343; names as in transformers' SiglipVisionModel.
#pragma once

#include "kinds/encoder_layers.hpp"

namespace troupe {

extern const ModuleKind kSiglip;

struct SiglipConfig : ModelOf<SiglipConfig, kSiglip> {
  std::int64_t image_size = 0;  ///< pixels, square
  std::int64_t patch_size = 0;  ///< pixels, divides image_size
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  double norm_epsilon = 1e-6;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  EncoderSizes sizes() const { return {hidden, heads, mlp_hidden, layers}; }

  void FillDefaults(const std::function<bool(const char* key)>& stated) override;
  void Check(ModuleCheck& check) const override;
  std::string WhyNotFrom(const ModelConfig& source) const override;
  std::unique_ptr<const Field> field() const override;
  std::int64_t rows_per_item() const override { return num_patches(); }
  std::int64_t row_width() const override { return hidden; }
  std::optional<Layers> split_layers() const override { return Layers{layers}; }
  ExtraCosts extra_costs() const override;
  bool AllowsTp(int tp) const override { return heads % tp == 0 && mlp_hidden % tp == 0; }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  void CountFlops(const StagePlace& stage, const StepShape& shape, const std::string& name,
                  FlopCounter& count) const override;
  std::int64_t KeptElements(const StagePlace& stage, const RankWork& work) const override;
  friend bool operator==(const SiglipConfig&, const SiglipConfig&) = default;
};

}  // namespace troupe
