// Vision encoders that cut images into patches and run pre-norm transformer layers without a mask:
// LayerNorm, attention, LayerNorm, an MLP of two linears. Kinds derive from it and add the
// differences.
#pragma once

#include <algorithm>
#include <vector>

#include "kinds/kind.hpp"

namespace troupe {

/// The function between the two linears of the MLP.
enum class MlpActivation {
  kQuickGelu,  ///< x sigmoid(1.702 x)
  kGelu,       ///< x Phi(x)
  kGeluTanh    ///< its approximation by tanh
};

struct EncoderSizes {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  std::int64_t layers = 0;  ///< of the whole model; determines the standard deviation
};

struct PatchEncoder : ModelConfig {
  std::int64_t image_size = 0;  ///< pixels, square
  std::int64_t patch_size = 0;  ///< pixels, divides image_size unless drops_border
  bool drops_border = false;    ///< pixels beyond the last whole patch are dropped
  ImageRecipe image_recipe;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  double norm_epsilon = 1e-5;
  MlpActivation activation = MlpActivation::kQuickGelu;
  /// Index into (embedding, layer 1, ..., layer n); -2 = last but one.
  std::int64_t feature_layer = -1;
  bool final_norm = false;  ///< post_layernorm follows the feature layer
  std::int64_t joined = 1;  ///< side of the squares of patches that leave as one row (JoinRows)

  /// Returns the number of layers that are built, up to the feature layer: [0, layers].
  std::int64_t built_layers() const {
    return feature_layer < 0 ? layers + 1 + feature_layer : feature_layer;
  }
  std::int64_t grid() const { return image_size / patch_size; }  ///< patches in a row
  std::int64_t num_patches() const { return grid() * grid(); }
  EncoderSizes sizes() const { return {hidden, heads, mlp_hidden, layers}; }
  /// Returns the number of rows per image in the layers.
  virtual std::int64_t sequence_length() const { return num_patches(); }

  void FillDefaults(const std::function<bool(const char* key)>& stated) override;
  void Check(ModuleCheck& check) const override;
  std::string WhyNotFrom(const ModelConfig& source) const override;
  std::unique_ptr<const Field> field() const override;
  ImageRecipe* images() override { return &image_recipe; }
  bool JoinRows(std::int64_t side) override;
  /// Returns the tokens of an image that rank `part` of `parts` along cp has, in the order of its
  /// rows: those of the part of the rows that leave. Tokens that do not leave are first, with part 0.
  std::vector<std::int64_t> TokensOf(int parts, int part) const;
  /// Returns the number of tokens that do not leave.
  std::int64_t num_inner_tokens() const {
    return sequence_length() - rows_per_square() * joined * joined;
  }
  /// Returns the number of rows that leave for a square.
  virtual std::int64_t rows_per_square() const { return num_patches() / (joined * joined); }
  std::int64_t RowsOf(std::int64_t length) const override { return length * rows_per_square(); }
  std::int64_t rows_per_item() const override { return RowsOf(most_length()); }
  std::int64_t most_length() const override { return image_recipe.most_squares(); }
  std::int64_t tile_side() const override {
    return image_recipe.has_tiles() && patch_size > 0 ? grid() / joined : 0;
  }
  std::int64_t row_width() const override { return hidden * joined * joined; }
  std::optional<Layers> split_layers() const override {
    return Layers{built_layers(), "up to feature_layer"};
  }
  void KeepLayers(std::int64_t most) override {
    const std::int64_t fewer = std::max<std::int64_t>(0, built_layers() - most);
    layers -= fewer;
    if (feature_layer >= 0) feature_layer -= fewer;
  }
  bool cuts_rows() const override { return true; }
  RowCut CutOver(int cp) const override {
    return {RowCut::By::kItems, cp, std::max<std::int64_t>(1, rows_per_square())};
  }
  std::int64_t most_context_parts() const override { return rows_per_square(); }
  bool AllowsTp(int tp) const override { return heads % tp == 0 && mlp_hidden % tp == 0; }
  /// Adds the layers of the stage, and the final norm.
  void AddParameters(const StagePlace& stage, ParameterList& list) const override;
  void ListWork(const StagePlace& stage, const StepShape& shape, const std::string& name,
                WorkList& work) const override;
  /// Each layer keeps two norm inputs and outputs, q k v, the attention weights, and the MLP's two
  /// wide rows; the final norm keeps its input.
  std::int64_t KeptElements(const StagePlace& stage, const RankWork& work) const override;
  LayerSpace SpaceElements(const StagePlace& stage, const RankWork& work) const override;
  friend bool operator==(const PatchEncoder&, const PatchEncoder&) = default;

 protected:
  void AddPatchWeight(ParameterList& list) const;
  void AddPositions(std::int64_t number, ParameterList& list) const;

 private:
  LayerRow RowOf(const RankWork& work) const;
  /// Returns the most tokens that a rank has.
  std::int64_t MostTokens(const RankWork& work) const;
};

/// Fills the keys of a patch encoder, whose values are the family's defaults, from a folder's
/// `vision_config`, and the feature from a whole LLaVA.
void ReadForeignEncoder(const ForeignConfig& config, const ForeignConfig* whole,
                        PatchEncoder& encoder);
/// Returns the values of config.json of a patch encoder. Of one that started from random values only
/// the layers up to the feature exist.
ForeignValues WriteForeignEncoder(const PatchEncoder& encoder, const ModelConfig* source);
/// Returns an identity as its final norm, if it has none.
std::vector<ForeignConstant> EncoderConstants(const ModelConfig& model);
/// Returns the grids of tiles, each of squares of `size` pixels, that `image_grid_pinpoints` lists.
std::vector<TileGrid> ReadForeignGrids(const ForeignConfig& config, std::int64_t size);
/// Returns whether a whole LLaVA keeps the first row of an image.
bool ReadKeepsFirstRow(const ForeignConfig& whole);

/// Returns the names of vision encoders' tensors in folders of CLIP, SigLIP and LLaVA.
std::vector<ForeignNames> VisionNames();

/// Returns the keys of a patch encoder; `own` precede the last one.
std::vector<ModelKey> PatchEncoderKeys(std::vector<ModelKey> own = {});

}  // namespace troupe
