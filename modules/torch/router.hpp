// The router of a layer with experts, and its auxiliary losses.
// M rows of a rank that are tokens, E experts, k of them chosen for each.
#pragma once

#include <cstdint>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "kinds/experts.hpp"
#include "modules/torch/expert_group.hpp"

namespace troupe {

/// What the losses of the routers of one pass need. They add up over the layers with experts, M' of them in
/// the module, m in this stage, and have no value here: only their gradients are computed.
///
/// Balance::kSample: for each sample of T tokens, E / (M' samples of the global batch) times the sum over
/// experts of f p, where f is the share of the T tokens that chose the expert, and p the mean of its
/// probability. Balance::kMicrobatch: the same over all tokens of a microbatch, of all replicas in lock
/// step, and with f and p over all layers of the stage at once, as in transformers; divided by their number
/// in a step in place of samples. f has no gradient.
/// The z-loss is the sum over tokens of the square of the log-sum-exp of their logits, divided by M' and
/// the tokens of the global batch. (arXiv:2101.03961, arXiv:2202.08906)
struct RouterScales {
  MoeConfig moe;
  std::int64_t all_layers = 1;    ///< M'
  std::int64_t stage_layers = 1;  ///< m
  double sample = 0.0;            ///< 1 / samples of the global batch
  double token = 0.0;             ///< 1 / its tokens
  double microbatch = 0.0;        ///< 1 / (microbatches of a step * sets of replicas in lock step)
};

/// The counts of one pass, from its forward to its backward.
class RouterLosses : public torch::CustomClassHolder {
 public:
  /// `groups` [M] int64: the sample of each row among `num_groups` of the replica.
  RouterLosses(const RouterScales& scales, at::Tensor groups, std::int64_t num_groups,
               const ExpertsConfig& experts);

  /// Counts the experts `chosen` [M, k] in the layer at that place. Ignored when a layer is
  /// recomputed.
  void Count(std::int64_t layer, const at::Tensor& chosen);
  /// All layers have counted: adds up over the ranks.
  void Finish(const ExpertGroup& group);
  /// Adds the gradients of the losses to `gradient` [M, E] of `logits` [M, E].
  void AddTo(at::Tensor& gradient, const at::Tensor& logits, std::int64_t layer) const;

 private:
  RouterScales scales_;
  at::Tensor groups_;
  ExpertsConfig experts_;
  at::Tensor counts_;   ///< [layers, groups, E] float64
  at::Tensor factors_;  ///< likewise: of the probabilities of a row, once all have counted
};

using RouterLossesPtr = c10::intrusive_ptr<RouterLosses>;

struct RoutedRows;

/// A layer with experts: its number in the module, and among those with experts of its stage.
struct RoutedLayer {
  std::int64_t number = 0;
  std::int64_t place = 0;
};

/// The choice of a router.
struct Routing {
  at::Tensor chosen;   ///< [M, k] int64
  at::Tensor weights;  ///< [M, k] in the type of the state, at least float32
};

/// Chooses experts for x [M, H] by `weight` [E, H].
Routing ChooseExperts(const at::Tensor& x, const at::Tensor& weight, const ExpertsConfig& experts,
                      const RoutedRows& rows, const RoutedLayer& layer);

}  // namespace troupe
