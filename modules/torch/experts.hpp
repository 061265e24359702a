// Experts of a layer, divided over a group of ranks: rows go to the ranks with the experts that the router
// chose for them, through these, and back.
#pragma once

#include <cstdint>
#include <string>
#include <torch/types.h>

#include "kinds/experts.hpp"
#include "modules/torch/expert_group.hpp"
#include "modules/torch/parameter_store.hpp"
#include "modules/torch/router.hpp"

namespace troupe {

struct RoutedRows;
using RoutedRowsPtr = c10::intrusive_ptr<RoutedRows>;

/// The leaves of a layer's experts on a rank, which has e of E. The experts are F wide inside, and a rank
/// has F' of that.
struct ExpertWeights {
  at::Tensor router;   ///< [E, H]
  at::Tensor gate_up;  ///< [e * 2 F', H]
  at::Tensor down;     ///< [e * H, F']
  ExpertsConfig sizes;
  RoutedLayer layer;
};

/// Loads the weights of MLP `name`.
ExpertWeights LoadExperts(const std::string& name, const ExpertsConfig& sizes,
                          const RoutedLayer& layer, const ExpertGroup& group,
                          const ParameterStore& store);

/// The sum of what the chosen experts give to x [n, H], by the router's weights; 0 for padding. All ranks of
/// the group call it at once, also those without rows. `recompute_up`: the wide rows are computed again in the
/// backward.
at::Tensor RunExperts(const at::Tensor& x, const ExpertWeights& weights, const RoutedRowsPtr& rows,
                      const ExpertGroupPtr& group, bool recompute_up);

}  // namespace troupe
