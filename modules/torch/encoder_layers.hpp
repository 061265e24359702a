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

namespace troupe {

struct LayerNormWeights {
  at::Tensor weight;
  at::Tensor bias;
};
LayerNormWeights LoadLayerNorm(const std::string& name, const ParameterStore& store);

/// The values of a leaf, for nodes of the library. Their gradient is added to the leaf's .grad,
/// which must be preset when it trains and may be of a longer type, which those nodes do not allow.
at::Tensor LeafValues(const at::Tensor& leaf);

/// Images [n, 3, S, S] in host memory as rows [n, P, H], one for each of their P patches of p x p
/// pixels; `patch` [H, 3 p p]. A convolution whose stride is its kernel is a product.
at::Tensor EmbedPatches(const at::Tensor& images, const PatchEncoder& sizes,
                        const LinearWeights& patch, const Numerics& numerics,
                        const TensorGroupPtr& group);

/// Rows [n * P, H] of the patches of n images as they leave the module: [n * P / s^2, s^2 H], with
/// the rows of each square of s x s patches (PatchEncoder::joined) from left to right, top to bottom.
at::Tensor JoinPatches(const at::Tensor& rows, const PatchEncoder& sizes);

/// The layers MODULE.encoder.layers.N of one stage, cut over a tensor-parallel group, and the norm
/// after the last one.
class EncoderLayers {
 public:
  /// Of stage `pp` of `module`, a PatchEncoder; their parameters must be in `store`. Throws
  /// std::invalid_argument unless tp divides the heads.
  EncoderLayers(const ModuleConfig& module, int pp, const ParameterStore& store,
                TensorGroupPtr group);

  /// Rows [n * length, hidden] through all layers. Throws std::invalid_argument for others.
  at::Tensor Run(at::Tensor rows) const;
  /// Rows that have passed all layers, after the final norm if there is one. Last stage only.
  at::Tensor Finish(const at::Tensor& rows) const;

 private:
  struct Layer {
    LayerNormWeights norm1;
    LinearWeights qkv;
    LinearWeights out;
    LayerNormWeights norm2;
    LinearWeights fc1;
    LinearWeights fc2;
    ParameterGatePtr gate = {};
  };

  static Layer LoadLayer(const std::string& name, const ModuleConfig& module,
                         const ParameterStore& store);
  at::Tensor ApplyNorm(const at::Tensor& rows, const LayerNormWeights& norm) const;
  /// The outputs of a layer's heads.
  at::Tensor RunAttention(const at::Tensor& rows, const Layer& layer, const AttentionPlanPtr& plan,
                          std::int64_t cut_rows) const;
  at::Tensor RunLayer(const at::Tensor& rows, const Layer& layer, const AttentionPlanPtr& plan,
                      std::int64_t cut_rows) const;

  std::string name_;
  EncoderSizes sizes_;
  std::int64_t length_;  ///< rows of a sequence
  double norm_epsilon_;
  at::Tensor (*activation_)(const at::Tensor&);
  Recompute recompute_;
  bool portable_;
  TensorGroupPtr group_;
  std::vector<Layer> layers_;
  std::optional<LayerNormWeights> final_norm_;  ///< of the last stage
};

}  // namespace troupe
