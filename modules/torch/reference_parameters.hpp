// The reference's parameters: what they are called, how they start, and what belongs to each.
// Only the reference's own files include this: it brings libtorch.
#pragma once

#include <map>
#include <string>
#include <torch/types.h>

#include "configs/config.hpp"

namespace troupe::reference {

/// One tensor of the model and its AdamW state.
struct Parameter {
  at::Tensor value;          ///< a leaf: what the model computes with
  at::Tensor kept;           ///< what the optimizer steps; `value` itself unless that is rounded
  at::Tensor gradient;       ///< of the last step, before clipping; undefined when frozen
  at::Tensor first_moment;   ///< undefined when frozen
  at::Tensor second_moment;  ///< undefined when frozen
  OptimizerOverride rates;   ///< of the module it belongs to

  bool rounded = false;  ///< `value` is `kept` rounded to bfloat16

  bool trainable() const { return value.requires_grad(); }
};

/// By name; the order of the names is the order of everything that runs over all parameters.
using Parameters = std::map<std::string, Parameter>;

/// All parameters of the model with their initial values. Throws std::invalid_argument as the
/// constructor of Reference says.
Parameters MakeParameters(const Config& config);

/// The modules at the two ends of an edge.
const ModuleConfig& Source(const Config& config, const EdgeConfig& edge);
const ModuleConfig& Destination(const Config& config, const EdgeConfig& edge);

/// "vision_to_language"
std::string ProjectorName(const EdgeConfig& edge);
/// What the reference computes in: a run in bfloat16 is measured against float64.
at::ScalarType TypeOf(Precision precision);
/// The values that a run in bfloat16 begins with, where that rounds them to it; still as wide.
at::Tensor RoundedTo(Precision precision, const at::Tensor& values);
/// Makes `value` follow `kept`.
void SetFromKept(Parameter& parameter, Precision precision);

/// Throws std::invalid_argument.
[[noreturn]] void Refuse(const std::string& text);

}  // namespace troupe::reference
