// What encoders of pre-norm layers are made of: LayerNorm, attention without a mask, LayerNorm, an
// MLP of two linears. kinds/encoder_layers.hpp has their parameters.
#pragma once

#include <cstdint>
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
LinearWeights LoadLinear(const std::string& name, const ParameterStore& store);

/// Images [n, 3, S, S] as rows of what a patch of p pixels has: [n * (S / p)^2, 3 p p]. A
/// convolution whose stride is its kernel is a product with them.
at::Tensor UnfoldPatches(const at::Tensor& images, std::int64_t patch_size);

/// Inside the MLP.
using Activation = at::Tensor (*)(const at::Tensor&);

/// What the layers of a kind share.
struct EncoderShape {
  EncoderSizes sizes;
  std::int64_t length = 0;  ///< rows of a sequence
  double norm_epsilon = 0.0;
  Activation activation = nullptr;
};

/// The layers MODULE.encoder.layers.N of one stage, cut over a tensor-parallel group.
class EncoderLayers {
 public:
  /// Of stage `pp` of `module`; their parameters must be in `store`. Throws std::invalid_argument
  /// unless tp divides the heads.
  EncoderLayers(const ModuleConfig& module, const EncoderShape& shape, int pp,
                const ParameterStore& store, TensorGroupPtr group);

  /// Rows [n * length, hidden] through all layers. Throws std::invalid_argument for others.
  at::Tensor Run(at::Tensor rows) const;

 private:
  struct Layer {
    LayerNormWeights norm1;
    LinearWeights qkv;
    LinearWeights out;
    LayerNormWeights norm2;
    LinearWeights fc1;
    LinearWeights fc2;
  };

  static Layer LoadLayer(const std::string& name, const ParameterStore& store);
  at::Tensor ApplyNorm(const at::Tensor& rows, const LayerNormWeights& norm) const;
  at::Tensor RunLayer(const at::Tensor& rows, const Layer& layer,
                      const AttentionPlanPtr& plan) const;

  std::string name_;
  EncoderShape shape_;
  Recompute recompute_;
  bool portable_;
  TensorGroupPtr group_;
  std::vector<Layer> layers_;
};

}  // namespace troupe
