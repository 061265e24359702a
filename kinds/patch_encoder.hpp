// Vision encoders that cut images into patches and run pre-norm transformer layers without a mask:
// LayerNorm, attention, LayerNorm, an MLP of two linears. Kinds derive from it and add the
// differences.
#pragma once

#include "kinds/kind.hpp"

namespace troupe {

struct EncoderSizes {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  std::int64_t layers = 0;  ///< of the whole model; determines the standard deviation
};

struct PatchEncoder : ModelConfig {
  std::int64_t image_size = 0;  ///< pixels, square
  std::int64_t patch_size = 0;  ///< pixels, divides image_size
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  double norm_epsilon = 1e-5;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  EncoderSizes sizes() const { return {hidden, heads, mlp_hidden, layers}; }
  /// Returns the number of rows per image in the layers.
  virtual std::int64_t sequence_length() const { return num_patches(); }

  void FillDefaults(const std::function<bool(const char* key)>& stated) override;
  void Check(ModuleCheck& check) const override;
  std::string WhyNotFrom(const ModelConfig& source) const override;
  std::int64_t rows_per_item() const override { return num_patches(); }
  std::int64_t row_width() const override { return hidden; }
  std::optional<Layers> split_layers() const override { return Layers{layers}; }
  ExtraCosts extra_costs() const override;
  bool AllowsTp(int tp) const override { return heads % tp == 0 && mlp_hidden % tp == 0; }
  /// Adds the layers of the stage.
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  void CountFlops(const StagePlace& stage, const StepShape& shape, const std::string& name,
                  FlopCounter& count) const override;
  /// Each layer keeps two norm inputs and outputs, q k v, the attention weights, and the MLP's two
  /// wide rows.
  std::int64_t KeptElements(const StagePlace& stage, const RankWork& work) const override;
  friend bool operator==(const PatchEncoder&, const PatchEncoder&) = default;

 protected:
  void AddPatchWeight(ParameterList& list) const;
  void AddPositions(std::int64_t number, ParameterList& list) const;
};

/// Returns the keys of a patch encoder; `own` precede the last one.
std::vector<ModelKey> PatchEncoderKeys(std::vector<ModelKey> own = {});

}  // namespace troupe
