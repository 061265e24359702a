// The language model of kinds/llama.hpp: its layers (llama.cpp), its stages (llama_body.cpp) and its
// part of the reference (llama_reference.cpp).
#pragma once

#include <optional>
#include <torch/types.h>
#include <vector>

#include "kinds/llama.hpp"
#include "modules/torch/attention.hpp"
#include "modules/torch/linear.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/torch_kind.hpp"
#include "modules/torch/vocabulary.hpp"

namespace troupe {

extern const TorchKind kTorchLlama;

namespace reference {

void AddLlama(const ModuleConfig& module, const Maker& make);
at::Tensor LlamaLogits(const at::Tensor& tokens, const std::vector<Insertion>& insertions,
                       const ModuleConfig& module, const Parameters& w);

}  // namespace reference

/// Llama: RMSNorm, rotary embedding, grouped queries, SwiGLU, causal. B samples of T tokens, H
/// hidden; rows are [B * T, H]. Padding stands at the end of a sample, so causality hides it.
class Llama {
 public:
  /// Stage `pp` of `module`; its parameters must be in `store`.
  Llama(const ModuleConfig& module, int pp, const ParameterStore& store, TensorGroupPtr group);

  /// Rows of tokens [B, T] int64 in host memory. First stage only. Throws std::invalid_argument
  /// naming a token that is not in the vocabulary.
  at::Tensor EmbedTokens(const at::Tensor& tokens) const;
  /// The layers of this stage. Throws std::invalid_argument when `length` exceeds the context.
  at::Tensor RunLayers(at::Tensor rows, std::int64_t num_samples, std::int64_t length) const;
  /// Final norm, head and cross-entropy of some rows [M, H] and their labels [M] int64, which are
  /// in host memory. Last stage only. Throws std::invalid_argument naming a label that is no token.
  at::Tensor Loss(const at::Tensor& rows, const at::Tensor& labels, Predictions& predictions) const;

 private:
  struct Layer {
    at::Tensor norm1;
    LinearWeights qkv;
    at::Tensor query_norm;  ///< [head_dim], or undefined
    at::Tensor key_norm;
    LinearWeights out;
    at::Tensor norm2;
    LinearWeights gate_up;
    LinearWeights down;
  };

  /// Throws std::invalid_argument unless `ids` [n] are all tokens of the vocabulary.
  void CheckVocabulary(const at::Tensor& ids, const std::string& what) const;
  Layer LoadLayer(const std::string& name, const ParameterStore& store) const;
  /// q and k of `qkv` normed head by head, if the model does so.
  at::Tensor NormHeads(const at::Tensor& qkv, const Layer& layer, const AttentionPlan& plan) const;
  VocabularyPart LoadVocabulary(const std::string& name, const ParameterStore& store) const;
  at::Tensor RunLayer(const at::Tensor& rows, const Layer& layer,
                      const AttentionPlanPtr& plan) const;

  std::string name_;
  LlamaConfig config_;
  Recompute recompute_;
  Numerics numerics_;
  TensorGroupPtr group_;
  std::optional<VocabularyPart> embedding_;
  std::vector<Layer> layers_;
  std::optional<VocabularyPart> head_;
  at::Tensor norm_;
  at::Tensor cosine_;  ///< [context, head_dim / 2]
  at::Tensor sine_;
};

}  // namespace troupe
