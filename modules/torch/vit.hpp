// A vision transformer's part on one shard.
#pragma once

#include <optional>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/torch/attention.hpp"
#include "modules/torch/linear.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/parameter_store.hpp"

namespace troupe {

/// CLIP's vision transformer up to its feature layer: pre-norm blocks, quick-GELU. n images, P
/// patches, H hidden; rows are [n * (P + 1), H] with the class token first in each image.
class Vit {
 public:
  /// Stage `pp` of `module`; its parameters must be in `store`.
  Vit(const ModuleConfig& module, int pp, const ParameterStore& store, TensorGroupPtr group);

  /// Images [n, 3, S, S] in host memory to the rows of the first block. First stage only. Throws
  /// std::invalid_argument for another image size.
  at::Tensor Embed(const at::Tensor& images) const;
  /// The blocks of this stage. Throws std::invalid_argument for rows that are no whole images.
  at::Tensor RunLayers(at::Tensor rows) const;
  /// The rows that leave the module: without the class token's unless the feature keeps it.
  at::Tensor Features(const at::Tensor& rows) const;

 private:
  struct Norm {
    at::Tensor weight;
    at::Tensor bias;
  };
  struct Layer {
    Norm norm1;
    LinearWeights qkv;
    LinearWeights out;
    Norm norm2;
    LinearWeights fc1;
    LinearWeights fc2;
  };
  struct Embeddings {
    at::Tensor class_token;  ///< [H]
    LinearWeights patch;     ///< [H, 3 p p]
    at::Tensor positions;    ///< [P + 1, H]
    Norm norm;
  };

  static Norm LoadNorm(const std::string& name, const ParameterStore& store);
  static Layer LoadLayer(const std::string& name, const ParameterStore& store);
  at::Tensor ApplyNorm(const at::Tensor& rows, const Norm& norm) const;
  at::Tensor RunLayer(const at::Tensor& rows, const Layer& layer,
                      const AttentionPlanPtr& plan) const;

  std::string name_;
  VitConfig config_;
  Recompute recompute_;
  Numerics numerics_;
  TensorGroupPtr group_;
  std::optional<Embeddings> embeddings_;
  std::vector<Layer> layers_;
};

}  // namespace troupe
