// Experts in place of the MLP of a language model's layer: a router gives each token to some of several
// MLPs, and adds up their outputs by weights.
#pragma once

#include <cstdint>
#include <string>

#include "kinds/kind.hpp"

namespace troupe {

/// What the router's softmax runs over.
enum class RouterSoftmax {
  kBefore,  ///< all experts; the weights of those that are chosen add up to less than 1
  kAfter    ///< those that are chosen
};

struct ExpertsConfig {
  std::int64_t count = 0;          ///< in a layer that has some; 0: none has
  std::int64_t per_token = 2;      ///< chosen ones
  std::int64_t hidden = 0;         ///< width inside an expert
  std::int64_t shared_hidden = 0;  ///< of one more MLP that all tokens get, times a gate; 0: none
  std::int64_t every = 1;          ///< layers every - 1, 2 every - 1, ... have experts
  RouterSoftmax softmax = RouterSoftmax::kAfter;

  bool InLayer(std::int64_t layer) const { return count > 0 && (layer + 1) % every == 0; }
  /// Returns how many of `layers` have experts.
  std::int64_t LayersIn(const Interval& layers) const {
    return count > 0 ? layers.end / every - layers.begin / every : 0;
  }
  friend bool operator==(const ExpertsConfig&, const ExpertsConfig&) = default;
};

/// Reports sizes that do not fit together, or the layout.
void CheckExperts(const ExpertsConfig& experts, ModuleCheck& check);

/// Adds the parameters of MLP `name`, whose rows are `width` wide; outputs are `residual` as large as
/// others.
void AddExperts(const ExpertsConfig& experts, const std::string& name, std::int64_t width,
                double residual, ParameterList& list);
/// Adds the gate, up and down of an MLP.
void AddGatedMlp(const std::string& name, std::int64_t inner, std::int64_t width, double residual,
                 ParameterList& list);

/// Returns our names of Mixtral's tensors; others as they are.
std::string OwnExpertName(const std::string& name);
/// Returns the reverse.
std::string MixtralName(const std::string& name);

}  // namespace troupe
