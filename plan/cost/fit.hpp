// Fits rates of a device to measured times.
#pragma once

#include <functional>
#include <vector>

#include "plan/cost/device.hpp"

namespace troupe {

/// A time that was measured, and what the cost model says about it.
struct Observation {
  std::function<double(const DeviceModel&)> time;  ///< in seconds, linear in the fitted rates
  double seconds = 0.0;                            ///< measured; above 0
};

/// Sets one rate of a device.
using SetRate = std::function<void(DeviceModel&, double)>;

/// Sets `rates` of `device`, none below 0, so that the squares of the relative errors have the smallest
/// sum. The other rates of `device` are taken as they are. At most 8 rates: all choices of those above 0
/// are tried.
void FitRates(const std::vector<Observation>& observations, const std::vector<SetRate>& rates,
              DeviceModel& device);

/// Returns the model's time over the measured one, less 1, for each observation.
std::vector<double> RelativeErrors(const std::vector<Observation>& observations,
                                   const DeviceModel& device);

}  // namespace troupe
