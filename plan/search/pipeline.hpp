// One module as a pipeline, in closed form (plan/search/space.hpp): the times of a step, and its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/device.hpp"
#include "plan/search/module_table.hpp"

namespace troupe {

/// What a pipeline runs in a step.
struct PipelineRun {
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int64_t samples = 0;  ///< of a unit, on each replica
  std::int64_t units = 1;
  std::int64_t units_behind =
      0;                  ///< that later modules hold while a stage waits for their gradients
  bool offloads = false;  ///< activations of layers, as "auto" does
};

/// A module as a pipeline: what its ranks take for one microbatch, and for a step.
struct Pipeline {
  double first_s = 0.0;   ///< of the first microbatch
  double period_s = 0.0;  ///< between microbatches
  double update_s = 0.0;  ///< what follows the last unit: CostOfUpdate of a rank's stages
  double bytes = 0.0;     ///< of the rank that holds most
};

/// Interpolates between units of two sizes: `weight` 0 gives `one`, 1 gives `two`.
std::vector<StageSums> Between(const std::vector<StageSums>& one, const std::vector<StageSums>& two,
                               double weight);

/// Returns the most units that a stage of an interleaved pipeline (InterleavedOrders) keeps at one time:
/// that of `chunk` on `rank`.
std::int64_t KeptInterleaved(int pp, int chunks, int rank, int chunk, std::int64_t units);

/// Returns the pipeline of a module. `module` states the layout and the chunks; `stages` are all its
/// virtual stages.
Pipeline PipelineOf(const Config& config, const DeviceModel& device, const ModuleConfig& module,
                    const std::vector<StageSums>& stages, const PipelineRun& run);

/// Returns a pipeline that takes and holds at most what `module` does with as many replicas or fewer,
/// which have at least `run.units` units. Its update takes no time.
Pipeline LeastPipelineOf(const Config& config, const DeviceModel& device,
                         const ModuleConfig& module, const std::vector<StageSums>& stages,
                         const PipelineRun& run);

}  // namespace troupe
