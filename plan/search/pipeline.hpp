// One module as a pipeline, in closed form (plan/search/space.hpp): the times of a step, and its memory.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/device.hpp"
#include "plan/search/module_table.hpp"

namespace troupe {

/// A module as a pipeline: what its ranks take for one microbatch, and for a step.
struct Pipeline {
  double first_s = 0.0;   ///< of the first microbatch
  double period_s = 0.0;  ///< between microbatches
  double update_s = 0.0;  ///< what follows the last unit: CostOfUpdate of a rank's stages
  double bytes = 0.0;     ///< of the rank that holds most
};

/// What the closed form needs of a stage.
struct StageSums {
  double pass_s = 0.0;
  double split_s = 0.0;  ///< its passes less twice the weights
  double backward_s = 0.0;
  double kept_bytes = 0.0;
  HeldElements held;
  std::int64_t layers = 0;
};

/// The stages of a table with so many layers each.
std::vector<StageSums> SumsOf(const ModuleTable& table, const std::vector<std::int64_t>& sizes,
                              double row_bytes);

/// Interpolates between units of two sizes: `weight` 0 gives `one`, 1 gives `two`.
StageSums Between(const StageSums& one, const StageSums& two, double weight);

/// What a pipeline runs in a step.
struct PipelineRun {
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int64_t samples = 0;  ///< of a unit, on each replica
  std::int64_t units = 1;
  std::int64_t units_behind =
      0;  ///< that later modules hold while a stage waits for their gradients
};

class PipelineModel {
 public:
  /// `device` outlives it.
  explicit PipelineModel(const DeviceModel& device) : device_(device) {}
  PipelineModel(const PipelineModel&) = delete;
  PipelineModel& operator=(const PipelineModel&) = delete;

  /// `module` states the layout and the chunks; `stages` has all its virtual stages.
  Pipeline Of(const Config& config, const ModuleConfig& module,
              const std::vector<StageSums>& stages, const PipelineRun& run);

 private:
  double SlowestHop(const Config& config, const ModuleConfig& module, std::int64_t samples) const;
  const std::vector<std::int64_t>& KeptInterleaved(int pp, int chunks, std::int64_t units);

  const DeviceModel& device_;
  std::map<std::tuple<int, int, std::int64_t>, std::vector<std::int64_t>> kept_interleaved_;
  // By rank of the pipeline; members so that a call allocates nothing.
  std::vector<double> busy_s_;
  std::vector<double> bytes_;
  std::vector<double> updates_s_;
};

}  // namespace troupe
