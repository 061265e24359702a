// The language model of kinds/llama.hpp: its layers (llama.cpp), its stages (llama_body.cpp) and its
// part of the reference (llama_reference.cpp).
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <torch/types.h>
#include <vector>

#include "kinds/llama.hpp"
#include "modules/torch/attention.hpp"
#include "modules/torch/experts.hpp"
#include "modules/torch/linear.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/torch_kind.hpp"
#include "modules/torch/vocabulary.hpp"

namespace troupe {

extern const TorchKind kTorchLlama;

namespace reference {

void AddLlama(const ModuleConfig& module, const Maker& make);
TextOutput LlamaLogits(const TextBatch& batch, const std::vector<Insertion>& insertions,
                       const ModuleConfig& module, const Parameters& w);

}  // namespace reference

/// Llama: RMSNorm, rotary embedding, grouped queries, SwiGLU, causal; H hidden. Rows [M, H] are those of
/// the tokens that the rank has of each sample, all of them unless cp is above 1. Padding stands at the
/// end of a sample, so causality hides it.
class Llama final : public Decoder {
 public:
  /// Stage `pp` of `module`; its parameters must be in `store`.
  Llama(const ModuleConfig& module, int pp, const ParameterStore& store, const BodyGroups& groups);

  /// Of tokens of any shape. First stage only.
  at::Tensor EmbedTokens(const at::Tensor& tokens) const override;
  /// The layers of this stage, of samples that have `lengths` tokens on all ranks along cp. Where ranks
  /// along tp cut rows, `rows` and the result are this rank's. `routed` are the rows that routers get. Throws
  /// std::invalid_argument when one exceeds the context, or for another number of rows.
  at::Tensor RunLayers(at::Tensor rows, const std::vector<std::int64_t>& lengths,
                       const RoutedRowsPtr& routed) const;
  /// Final norm, head and cross-entropy of some rows [M, H] and their labels [M] int64, which are
  /// in host memory. Where ranks along tp cut rows, `rows` are this rank's, counts[rank] of M. Last stage
  /// only. Throws std::invalid_argument for a label that is not in the vocabulary.
  at::Tensor Loss(const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                  const at::Tensor& labels, Predictions& predictions) const;

  CacheSizes cache_sizes() const override;
  std::int64_t context() const override { return config_.context; }
  at::Tensor RunLayers(at::Tensor rows, const CachedTokens& tokens,
                       KeyValueCache& cache) const override;
  at::Tensor Logits(const at::Tensor& rows) const override;

 private:
  struct Layer {
    at::Tensor norm1;
    LinearWeights qkv;
    at::Tensor query_norm;  ///< [head_dim], or undefined
    at::Tensor key_norm;
    LinearWeights out;
    at::Tensor norm2;
    /// Of the MLP, or of the expert that all tokens get; undefined if there is neither.
    LinearWeights gate_up = {};
    LinearWeights down = {};
    std::optional<ExpertWeights> experts = {};
    LinearWeights shared_gate = {};  ///< of the expert that all tokens get
    ParameterGatePtr gate = {};
    bool leaves = false;  ///< its activations are in host memory between its passes
  };
  /// The parts of a pass that all layers share.
  struct PassRows {
    AttendFunction attend;
    RoutedRowsPtr routed;
    std::int64_t cut_rows = 0;
  };

  /// Throws std::invalid_argument unless `ids` [n] are all tokens of the vocabulary.
  void CheckVocabulary(const at::Tensor& ids, const std::string& what) const;
  Layer LoadLayer(std::int64_t number, const ModuleConfig& module,
                  const ParameterStore& store) const;
  void LoadMlp(const std::string& name, std::int64_t number, const ModuleConfig& module,
               const ParameterStore& store, Layer& layer) const;
  /// q and k of `qkv` normed head by head, if the model does so.
  at::Tensor NormHeads(const at::Tensor& qkv, const Layer& layer) const;
  VocabularyPart LoadVocabulary(const std::string& name, const ParameterStore& store) const;
  /// Causal attention within samples of these lengths.
  AttendFunction AttendOver(const std::vector<std::int64_t>& lengths) const;
  /// The outputs of a layer's heads.
  at::Tensor RunAttention(const at::Tensor& rows, const Layer& layer, const PassRows& pass) const;
  at::Tensor RunMlp(const at::Tensor& rows, const Layer& layer, const PassRows& pass) const;
  /// A leaf that trains, if any of them does.
  static const at::Tensor& TrainedOfMlp(const Layer& layer);
  at::Tensor RunLayer(const at::Tensor& rows, const Layer& layer, const PassRows& pass) const;
  /// Of this rank.
  std::int64_t num_heads() const { return config_.heads / group_->size(); }
  std::int64_t num_kv_heads() const {
    return std::max<std::int64_t>(config_.kv_heads / group_->size(), 1);
  }

  std::string name_;
  LlamaConfig config_;
  Recompute recompute_;
  Numerics numerics_;
  TensorGroupPtr group_;
  ContextGroupPtr context_;
  ExpertGroupPtr expert_;
  std::optional<VocabularyPart> embedding_;
  std::vector<Layer> layers_;
  std::optional<VocabularyPart> head_;
  ParameterGatePtr head_gate_;
  at::Tensor norm_;
  at::Tensor cosine_;  ///< [context, head_dim / 2]
  at::Tensor sine_;
};

}  // namespace troupe
