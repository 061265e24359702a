// What the passes of a run say about a device.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/device.hpp"

namespace troupe {

/// How much longer the passes of a module took than the device's rates say.
struct ModuleScale {
  std::string module;
  double forward = 1.0;
  double backward = 1.0;
};

struct RunScale {
  Config config;            ///< of the run
  double measured_s = 0.0;  ///< a step: the median time from one's first pass to the next one's
  std::vector<ModuleScale> modules;
  std::string crowded;  ///< "8 ranks on 2 cores"; empty: each rank had a core, or the GPUs compute
};

/// Throws LaunchError, with --from, if that run does not have a module of `planned`, or has it with another
/// kind or other sizes. Layouts may differ.
void RequireSameModules(const std::string& run_directory, const Config& planned);

/// Compares the passes in the trace of a run with the cost model, for the samples that its first steps read.
/// Throws std::runtime_error without a trace, and as LoadConfig and RowSource do.
RunScale ScaleOf(const std::string& run_directory, const DeviceModel& device);

/// Multiplies the rates of the run's modules.
void ScaleRates(const RunScale& scale, DeviceModel& device);

/// "runs/x: 35.1 ms per step. Passes there, forward and backward, as multiples of those on DEVICE: vision
/// 1.07 and 1.12, ..."; then a line if ranks of that run shared cores.
std::string ScaleText(const std::string& run_directory, const RunScale& scale,
                      const DeviceModel& device);

}  // namespace troupe
