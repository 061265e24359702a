// The parts of encoders of pre-norm layers: LayerNorm, attention without a mask, LayerNorm, an MLP
// of two linears. kinds/patch_encoder.hpp has their parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "kinds/patch_encoder.hpp"
#include "modules/torch/attention.hpp"
#include "modules/torch/linear.hpp"
#include "modules/torch/parameter_store.hpp"
#include "modules/torch/torch_kind.hpp"

namespace troupe {

struct LayerNormWeights {
  at::Tensor weight;
  at::Tensor bias;
};
LayerNormWeights LoadLayerNorm(const std::string& name, const ParameterStore& store);

/// The values of a leaf, for nodes of the library. Their gradient is added to the leaf's .grad,
/// which must be preset when it trains and may be of a longer type, which those nodes do not allow.
at::Tensor LeafValues(const at::Tensor& leaf);

/// The tokens of an image that a rank along cp has (PatchEncoder::TokensOf).
class OwnTokens {
 public:
  OwnTokens(const PatchEncoder& encoder, const ContextGroup& context);

  const std::vector<std::int64_t>& tokens() const { return tokens_; }
  std::int64_t size() const { return std::ssize(tokens_); }
  /// How many of them do not leave.
  std::int64_t num_inner() const { return num_inner_; }
  /// Selects the own tokens along `dim` of x, which begins at token `inner`.
  at::Tensor Of(const at::Tensor& x, std::int64_t dim, std::int64_t inner) const;

 private:
  std::vector<std::int64_t> tokens_;
  std::int64_t num_inner_ = 0;
  bool all_in_order_ = false;
};

/// Images [n, 3, S, S] in host memory as rows [n, P, H], one for each of the own ones of their patches
/// of p x p pixels; `patch` [H, 3 p p]. A convolution whose stride is its kernel is a product.
at::Tensor EmbedPatches(const at::Tensor& images, const PatchEncoder& sizes, const OwnTokens& own,
                        const LinearWeights& patch, const Numerics& numerics,
                        const TensorGroupPtr& group);

/// The layers MODULE.encoder.layers.N of one stage, cut over a tensor-parallel group and over cp, and
/// the norm after the last one.
class EncoderLayers {
 public:
  /// Of stage `pp` of `module`, a PatchEncoder; their parameters must be in `store`. Throws
  /// std::invalid_argument unless tp divides the heads.
  EncoderLayers(const ModuleConfig& module, int pp, const ParameterStore& store,
                const BodyGroups& groups);

  const OwnTokens& own() const { return own_; }
  /// Rows [n * own().size(), hidden] through all layers. Throws std::invalid_argument for others.
  at::Tensor Run(at::Tensor rows) const;
  /// Rows that have passed all layers as they leave the module: after the final norm if there is one,
  /// [rows, s^2 H] with the tokens of each square of s x s (PatchEncoder::joined) in one row. Last
  /// stage only.
  at::Tensor Finish(const at::Tensor& rows) const;
  /// Encoder::RowNumbers.
  std::vector<std::int64_t> RowNumbers(std::int64_t num_rows) const;

 private:
  struct Layer {
    LayerNormWeights norm1;
    LinearWeights qkv;
    LinearWeights out;
    LayerNormWeights norm2;
    LinearWeights fc1;
    LinearWeights fc2;
    ParameterGatePtr gate = {};
    bool leaves = false;  ///< its activations are in host memory between its passes
  };

  static Layer LoadLayer(const std::string& name, const ModuleConfig& module,
                         const ParameterStore& store);
  at::Tensor ApplyNorm(const at::Tensor& rows, const LayerNormWeights& norm) const;
  /// Attention of n images.
  AttendFunction AttendOver(std::int64_t num_images) const;
  /// The outputs of a layer's heads.
  at::Tensor RunAttention(const at::Tensor& rows, const Layer& layer, const AttendFunction& attend,
                          std::int64_t cut_rows) const;
  at::Tensor RunLayer(const at::Tensor& rows, const Layer& layer, const AttendFunction& attend,
                      std::int64_t cut_rows) const;

  std::string name_;
  ModuleConfig module_;
  EncoderSizes sizes_;
  OwnTokens own_;
  double norm_epsilon_;
  at::Tensor (*activation_)(const at::Tensor&);
  Recompute recompute_;
  bool portable_;
  TensorGroupPtr group_;
  ContextGroupPtr context_;
  std::vector<Layer> layers_;
  std::optional<LayerNormWeights> final_norm_;  ///< of the last stage
};

}  // namespace troupe
