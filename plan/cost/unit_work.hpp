// The work of the units of a step whose samples are known.
#pragma once

#include <cstdint>
#include <vector>

#include "kinds/work.hpp"
#include "plan/job_plan.hpp"

namespace troupe {

/// The samples of a step, by place of its batch: one each, those of a pack, or none.
using PlacedSamples = std::vector<std::vector<StepShape>>;
/// Steps whose samples are known; empty: every sample is full.
using Workload = std::vector<PlacedSamples>;

/// The work of samples that are not drawn yet.
class AverageWork {
 public:
  AverageWork() = default;  ///< every sample is full
  explicit AverageWork(const Workload& workload);
  /// Returns the work of so many samples of `module` on one replica: as many labels and items as they have
  /// on average; and as many tokens each, or where the replica pads as many as the longest of them may have.
  StepShape Of(const Config& config, const ModuleConfig& module, std::int64_t samples) const;

 private:
  std::vector<std::int64_t> tokens_;  ///< of the samples of all steps, ascending
  double places_ = 0.0;               ///< in which they are
  StepShape sum_;
};

/// Returns the work of one replica in a unit of a round of schedule.microbatches: a shape for each
/// length of its samples, or one if the replica pads all of them to the longest.
std::vector<StepShape> WorkOfUnit(const JobPlan& plan, const PlacedSamples& samples, int module,
                                  int dp, std::int64_t unit);

/// Returns the samples in the places that data.order gives them: those they have, or balanced ones.
PlacedSamples InOrder(const Config& config, const PlacedSamples& samples);

/// Returns which part of the largest tensors that a microbatch can have these samples fill on average: a
/// number in [0, 1] by module.
std::vector<double> FilledParts(const JobPlan& plan, const PlacedSamples& samples);

}  // namespace troupe
