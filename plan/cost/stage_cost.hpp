// The times of one stage on each of its ranks: passes, and what follows the last backward of a step.
#pragma once

#include <string>

#include "configs/config.hpp"
#include "kinds/work.hpp"
#include "plan/cost/breakdown.hpp"
#include "plan/cost/device.hpp"
#include "plan/cost/rank_cost.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

/// Bytes of an element of parameters, gradients and moments, and of rows between layers.
double StateBytes(const Config& config);
double RowBytes(const Config& config);

/// Returns how a part that runs on the ranks of `host` is divided among them.
RankShare ShareOf(const Config& config, const ModuleConfig& host, const StagePart& part);

/// Returns the tokens of all samples for a module that reads text, else the length of the module's items.
std::int64_t SizeFor(const ModuleConfig& module, const StepShape& shape);
/// Returns `size` as a fraction of that of `samples` full samples of the module.
double FilledPart(const Config& config, const ModuleConfig& module, std::int64_t samples,
                  std::int64_t size);

/// Whether passes of a stage may wait for copies of activations to host memory and back.
bool CopiesActivations(const Config& config, const DeviceModel& device, const std::string& module,
                       int pp);

/// Returns the passes of a stage for the work that its ranks share: that of a replica's unit. All parts
/// of the stage count, inline encoders and projectors included. Modules that state their times have
/// these.
PassCost CostOfStage(const Config& config, const DeviceModel& device, const std::string& module,
                     int pp, const StepShape& shape);

/// What follows the last backward of a step.
struct UpdateCost {
  double reduce_s = 0.0;   ///< gradients summed over replicas
  double exposed_s = 0.0;  ///< the part of it that the last backward does not hide
  double update_s = 0.0;   ///< the optimizer
  double gather_s = 0.0;   ///< updated parameters gathered from replicas
};

/// What a rank has to sum and to update.
struct UpdateWork {
  double trained = 0.0;          ///< parameters
  double own = 0.0;              ///< those of them whose moments the rank holds
  std::int64_t layers = 0;       ///< of the stage
  double last_backward_s = 0.0;  ///< during which the sums of layers that it has left are under way
};
UpdateCost CostOfUpdate(const Config& config, const DeviceModel& device, const Layout& layout,
                        const StateSharding& sharding, const UpdateWork& work);

/// `last_backward_s`: the time of the stage's last backward, during which the sums of the layers that
/// it has left are under way.
UpdateCost CostOfUpdate(const Config& config, const DeviceModel& device, const std::string& module,
                        int pp, double last_backward_s);

}  // namespace troupe
