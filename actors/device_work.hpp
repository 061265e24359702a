// A command of a device as errors, traces and the device's own tools call it.
#pragma once

#include <cstdint>
#include <string>

#include "actors/device_actor.hpp"

namespace troupe {

/// "vision.s0 dp1 rank 5 forward of step 39 mb 1 (samples 0008, 0012)".
std::string Describe(const DeviceConfig& config, const DeviceWork& work);

/// What the device's own tools show: "vision.s0/microbatch 3/forward".
std::string RangeName(const DeviceConfig& config, const DeviceWork& work);

/// Notes that it ran, if messages are noted. In virtual time too. `cores` is of the thread that did
/// it, if that is known.
void Record(const DeviceConfig& config, const DeviceWork& work, const WorkTimes& times,
            const CoreTime& cores = {});

}  // namespace troupe
