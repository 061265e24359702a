// The parameters of the reference: names, initial values, optimizer state.
// Only files of the reference use them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "kinds/patch_encoder.hpp"

namespace troupe::reference {

/// What a training step drops before the adapters of a module. Its rows are those of sequences,
/// [sequences, rows of each, features].
struct Dropout {
  struct Sequence {
    std::int64_t sample = 0;  ///< place in the global batch
    std::int64_t number = 0;  ///< among the sequences of the sample
  };
  double share = 0.0;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::vector<Sequence> sequences;
};

/// One tensor of the model and its AdamW state.
struct Parameter {
  at::Tensor value;          ///< a leaf: the model computes with it
  at::Tensor kept;           ///< the optimizer steps it; `value` itself unless that is rounded
  at::Tensor gradient;       ///< of the last step, before clipping; undefined when frozen
  at::Tensor first_moment;   ///< undefined when frozen
  at::Tensor second_moment;  ///< undefined when frozen
  OptimizerOverride rates;   ///< of the module or projector it belongs to
  Traits traits;             ///< what optimizer.no_decay goes by

  // Of an adapter's first weight.
  double scale = 1.0;                                ///< alpha / rank
  std::shared_ptr<const Dropout> dropout = nullptr;  ///< null: nothing is dropped

  bool rounded = false;  ///< `value` is `kept` rounded to bfloat16

  bool trainable() const { return value.requires_grad(); }
};

/// By name; the order of the names is the order of everything that runs over all parameters.
using Parameters = std::map<std::string, Parameter>;

/// Adds parameters of one module or projector. The name is that of the parameter; where a function
/// adds several, it is what their names begin with.
struct Maker {
  std::uint64_t seed;
  Precision precision;
  bool frozen;
  OptimizerOverride rates;
  Parameters& parameters;
  std::optional<LoraConfig> lora = {};  ///< of the module

  /// `kept_exact`: a run in bfloat16 computes with the value as it is kept: in float32 if it trains,
  /// in bfloat16 if it is frozen.
  void Add(const std::string& name, Traits traits, const at::Tensor& value,
           bool kept_exact = false) const;
  /// Random values, which follow from the seed and the name.
  void Normal(const std::string& name, at::IntArrayRef shape, double std, Traits traits = {},
              bool kept_exact = false) const;
  /// Random values of standard deviation 1 / sqrt(last dimension) that are kept exact.
  void Exact(const std::string& name, at::IntArrayRef shape) const;
  /// Of standard deviation 1 / sqrt(last dimension).
  void Embedding(const std::string& name, at::IntArrayRef shape,
                 Traits traits = {Trait::kEmbedding}) const;
  /// NAME.weight of ones, and NAME.bias of zeros; a norm that has no bias is kept exact.
  void Norm(const std::string& name, std::int64_t hidden, bool bias) const;
  /// NAME.weight [out, in] and, if asked for, NAME.bias of zeros. `branches`: the residual branches
  /// whose sum the output ends in, 1 for none.
  void Linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
              std::int64_t branches = 1) const;
  /// NAME.lora_A.weight and NAME.lora_B.weight, if the module has an adapter beside this layer.
  void Adapter(const std::string& name, std::int64_t out, std::int64_t in) const;
  /// NAME.encoder.layers.N.layer_norm1, .self_attn.q_proj to .out_proj, .layer_norm2, .mlp.fc1 and
  /// .fc2 of a PatchEncoder, and NAME.post_layernorm.
  void EncoderLayers(const ModuleConfig& module) const;
};

/// All parameters of the model with their initial values. Throws std::invalid_argument as the
/// constructor of Reference says.
Parameters MakeParameters(const Config& config);

/// The modules at the two ends of an edge. Throw std::invalid_argument unless the one is an encoder
/// and the other a language model.
const ModuleConfig& Source(const Config& config, const EdgeConfig& edge);
const ModuleConfig& Destination(const Config& config, const EdgeConfig& edge);

/// "vision_to_language"
std::string ProjectorName(const EdgeConfig& edge);
/// The type that the reference computes in: a run in bfloat16 is measured against float64.
at::ScalarType TypeOf(Precision precision);
/// The values that a run in bfloat16 begins with, where that rounds them to it; still as wide.
at::Tensor RoundedTo(Precision precision, const at::Tensor& values);
/// Makes `value` follow `kept`.
void SetFromKept(Parameter& parameter, Precision precision);

/// Throws std::invalid_argument.
[[noreturn]] void Refuse(const std::string& text);

}  // namespace troupe::reference
