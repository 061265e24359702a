// Experts of the reference: every token goes through its experts one by one.
#pragma once

#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "kinds/experts.hpp"
#include "modules/torch/reference_model.hpp"

namespace troupe::reference {

/// Adds the parameters of MLP `name`, whose outputs are scaled as `branches` says (Maker::Linear).
void AddExperts(const ExpertsConfig& experts, const std::string& name, std::int64_t width,
                std::int64_t branches, const Maker& make);

/// What the routers of a model have seen.
struct RouterOutputs {
  std::vector<at::Tensor> logits;  ///< by layer with experts: [B, T, E]
  std::vector<at::Tensor> chosen;  ///< [B, T, k]
};

/// x [B, T, H]. Adds to `outputs`.
at::Tensor Experts(const at::Tensor& x, const ModuleConfig& module, std::int64_t layer,
                   const TextBatch& batch, const Parameters& w, RouterOutputs& outputs);

/// The losses of the routers (modules/torch/router.hpp); undefined if there are none.
at::Tensor RouterLoss(const RouterOutputs& outputs, const ModuleConfig& module,
                      const TextBatch& batch);

}  // namespace troupe::reference
