// The step time of a row of the paper, by Troupe's own cost model: the operations that its kinds list
// (kinds/work.hpp), on a device whose rates are these constants (plan/cost/), in the passes of a simulated
// schedule (schedule/simulate.hpp).
#pragma once

#include <string>
#include <vector>

#include "bench/paper_rows.hpp"
#include "kinds/kind.hpp"
#include "plan/cost/device.hpp"

namespace troupe::bench {

/// All constants that are not of a data sheet. bench/README.md shows how they were obtained: seven were
/// fitted on step times of H, those with "fixed" were not.
struct PaperConstants {
  double linear_efficiency = 0.827;   ///< of linear layers of unlimited size, of the peak
  double encoder_efficiency = 0.559;  ///< likewise, of the encoder's
  double linear_size = 512.0;         ///< fixed: they take 1 + this (1/m + 1/n + 1/k) times as long
  double attention_efficiency = 0.351;  ///< of attention, of the peak
  double element_traffic = 2.0;      ///< fixed: bytes that norms and the like move, over the ideal
  double tensor_exposed = 0.909;     ///< share of collectives along tp that nothing hides
  double context_exposed = 0.672;    ///< likewise, of the exchange of keys and values along cp
  double gradients_exposed = 0.418;  ///< likewise, of sums of gradients and gathers of parameters
  double slow = 1.129;               ///< time of the language model with Stack::kSlow
  double rails = 0.5;                ///< fixed: Topology::rails, of exchanges along cp
  double reserve_gb = 5.5;           ///< memory of contexts, communicators and workspaces
};

struct NamedConstant {
  std::string name;
  double PaperConstants::*value = nullptr;
};
const std::vector<NamedConstant>& ConstantNames();

/// Where the time of a step goes, in seconds.
struct PaperTime {
  double passes_s = 0.0;   ///< of the pipeline, with the encoder of H and NC
  double encoder_s = 0.0;  ///< before and after them, of C
  double reduce_s = 0.0;
  double update_s = 0.0;
  double total() const { return passes_s + encoder_s + reduce_s + update_s; }
};

class PaperModel {
 public:
  explicit PaperModel(const PaperConstants& constants);

  const PaperConstants& constants() const { return constants_; }
  /// Expects stack, regime and split to be set.
  PaperTime TimeOf(const PaperJob& job) const;
  /// Returns the split whose slowest stage is fastest. Expects the stack to be set.
  std::vector<std::int64_t> BalancedSplit(const PaperJob& job) const;

 private:
  /// Forward and backward of a microbatch, in seconds.
  struct Seconds {
    double forward = 0.0;
    double backward = 0.0;
    double total() const { return forward + backward; }
  };
  DeviceModel DeviceOf(Stack stack) const;
  Seconds LanguagePass(const PaperJob& job, const StagePlace& place) const;
  /// Of one sample.
  Seconds EncoderPass(const PaperJob& job) const;
  double PassesOf(const PaperJob& job) const;
  double ReduceTime(double parameters, int replicas, int stride) const;

  PaperConstants constants_;
};

}  // namespace troupe::bench
