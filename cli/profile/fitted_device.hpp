// The rates of a device from the passes of probes.
#pragma once

#include <vector>

#include "cli/profile/probes.hpp"
#include "cli/profile/traced_job.hpp"
#include "plan/cost/device_file.hpp"

namespace troupe {

struct MeasuredProbe {
  ProbeUse use = ProbeUse::kRates;
  TracedJob job;
};

struct FittedDevice {
  DeviceModel device;
  std::vector<ProfiledPass> passes;
};

/// Fits, in this order: the operations of each module, and those of all together; the collectives of
/// kGroups; the update; and what passes, tensors and steps take besides.
FittedDevice FitDevice(const std::vector<MeasuredProbe>& probes);

}  // namespace troupe
