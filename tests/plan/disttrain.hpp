// The planner of DistTrain (SIGCOMM 25, arXiv:2408.04275) as a problem of plan/search: its objective as
// reconstructed from its sections 4.2 and 4.3, since equations (1) and (5) are not legible. An encoder
// and a generator run as replicas on single GPUs before and behind a language model in tp, pp and dp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/search/choices.hpp"

namespace troupe {

struct DistTrainModel {
  std::string name;
  int layers = 0;
  double hidden = 0.0;
  double ffn = 0.0;
  double heads = 0.0;
  double kv_groups = 0.0;
  double resolution = 0.0;  ///< of images, pixels per side
};

inline const DistTrainModel kMllm9b{"MLLM-9B", 32, 4096, 11008, 32, 32, 512};
inline const DistTrainModel kMllm15b{"MLLM-15B", 40, 5120, 13824, 40, 40, 512};
inline const DistTrainModel kMllm72b{"MLLM-72B", 80, 8192, 28672, 64, 8, 1024};

/// Seconds of a sample, forward and backward, and what a GPU holds. Assumed: 312 TFLOP/s and 80 GB, 8,192
/// tokens, 7 images, 68 % of the peak in the language model and half of that in the others.
class DistTrainCost {
 public:
  explicit DistTrainCost(const DistTrainModel& model) : model_(model) {
    const double kv = model.hidden * model.kv_groups / model.heads;
    const double layer = model.hidden * (2.0 * model.hidden + 2.0 * kv + 3.0 * model.ffn);
    parameters_ = layer * model.layers + 2.0 * 32'000.0 * model.hidden;
    const double attention = 2.0 * kTokens * kTokens * model.hidden * model.layers;
    flops_ = 3.0 * (2.0 * parameters_ * kTokens + attention);
  }

  double language_s(int tp) const { return flops_ / (tp * kPeak * 0.68 * Efficiency(tp)); }
  double encoder_s() const {
    const double tokens = std::pow(model_.resolution / 14.0, 2);
    const double attention = 4.0 * tokens * tokens * 1280.0 * 32.0;
    return kImages * 3.0 * (2.0 * 0.63e9 * tokens + attention) / (kPeak * 0.34);
  }
  double generator_s() const {
    const double area = std::pow(model_.resolution / 512.0, 2);
    // The autoencoder only runs forward.
    return kImages * area * (3.0 * 0.68e12 + 1.1e12) / (kPeak * 0.34);
  }
  /// Parameters and gradients in 16 bits, 12 bytes of state divided over dp, and the activations of
  /// pp microbatches.
  double language_bytes(int tp, int pp, int dp) const {
    const double own = parameters_ / (static_cast<double>(tp) * pp);
    return 4.0 * own + 12.0 * own / dp + 34.0 * kTokens * model_.hidden * model_.layers / tp;
  }
  double flops() const { return flops_; }
  int layers() const { return model_.layers; }

 private:
  static constexpr double kPeak = 312e12;
  static constexpr double kTokens = 8192.0;
  static constexpr double kImages = 7.0;
  static double Efficiency(int tp) { return tp == 1 ? 1.0 : tp == 2 ? 0.98 : tp == 4 ? 0.95 : 0.9; }

  DistTrainModel model_;
  double parameters_ = 0.0;
  double flops_ = 0.0;
};

struct DistTrainLayout {
  int tp = 1;
  int pp = 1;
  int dp = 1;
};

/// A problem, and its sinks with the layout of the language model in each. A set has the sinks of one dp.
struct DistTrainProblem {
  ChoiceProblem problem;
  std::vector<std::vector<SinkOption>> sinks;
  std::vector<std::vector<DistTrainLayout>> layouts;
};

/// `batch` samples per step, in microbatches of one.
inline DistTrainProblem MakeDistTrain(const DistTrainModel& model, int gpus, int batch) {
  const DistTrainCost cost(model);
  DistTrainProblem made;
  made.problem.max_ranks = gpus;
  made.problem.chain = true;
  std::vector<int> dps;  // by group
  for (int dp = 1; dp <= batch; ++dp) {
    if (batch % dp != 0) continue;
    const std::size_t group = dps.size();
    auto& sinks = made.sinks.emplace_back();
    auto& layouts = made.layouts.emplace_back();
    for (const int tp : {1, 2, 4, 8}) {
      for (int pp = 1; pp <= model.layers; ++pp) {
        const int ranks = tp * pp * dp;
        if (model.layers % pp != 0 || ranks > gpus || cost.language_bytes(tp, pp, dp) > 80e9) {
          continue;
        }
        const double whole_s = cost.language_s(tp);
        sinks.push_back({.own = {.ranks = ranks, .first_s = whole_s, .period_s = whole_s / pp},
                         .units = batch / dp,
                         .group = group});
        layouts.push_back({tp, pp, dp});
      }
    }
    dps.push_back(dp);
    double least_s = 0.0;
    for (const SinkOption& sink : sinks) {
      const double own_s =
          sink.own.first_s + static_cast<double>(sink.units - 1) * sink.own.period_s;
      least_s = least_s == 0.0 ? own_s : std::min(least_s, own_s);
    }
    made.problem.sets_s.push_back(least_s);
  }
  made.problem.sinks_of = [sinks = made.sinks](std::size_t set) { return sinks[set]; };
  made.problem.options_of = [cost, gpus, dps](std::size_t group) {
    std::vector<std::vector<RunOption>> modules;
    for (const double sample_s : {cost.encoder_s(), cost.generator_s()}) {
      auto& options = modules.emplace_back();
      for (int ranks = 1; ranks <= gpus; ++ranks) {
        const double stage_s = dps[group] * sample_s / ranks;
        options.push_back({.ranks = ranks, .first_s = stage_s, .period_s = stage_s});
      }
    }
    return modules;
  };
  return made;
}

}  // namespace troupe
