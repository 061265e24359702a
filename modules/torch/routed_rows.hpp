// The rows of a pass that routers get.
#pragma once

#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"
#include "modules/torch/expert_choices.hpp"
#include "modules/torch/router.hpp"
#include "modules/torch/token_places.hpp"

namespace troupe {

/// The rows of a rank in one pass.
struct RoutedRows : torch::CustomClassHolder {
  at::Tensor tokens;       ///< [M] int64: those that are tokens and no padding; undefined: all
  RouterLossesPtr losses;  ///< null: there are none
  std::vector<RoutedToken> names;  ///< of each of the M, where they are recorded, else empty
};

using RoutedRowsPtr = c10::intrusive_ptr<RoutedRows>;

/// Makes those of a stage of a language model with experts.
class RowRouting {
 public:
  RowRouting(const Config& config, const ModuleConfig& module, int pp);

  /// `tensor` may cut rows or not: routers get rows that are cut over its ranks.
  RoutedRowsPtr RowsOf(const ForwardPass& pass, const TokenPlaces& places,
                       const TensorGroup& tensor, const at::Device& device) const;

 private:
  std::string name_;
  ExpertsConfig experts_;
  RouterScales scales_;
  std::int64_t samples_per_microbatch_;
};

}  // namespace troupe
