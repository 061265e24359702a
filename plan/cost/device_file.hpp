// Files of devices: JSON, either a public specification (devices/ has some) or what `troupe profile`
// measured. Keys are those of DeviceModel, with units in their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/device.hpp"

namespace troupe {

/// Returns the names of the specifications that the program knows, sorted.
std::vector<std::string> KnownDevices();

/// Returns a known device, or the one in the file at that path, for a run of that precision. Throws
/// std::runtime_error, one line that names the file and the fault.
DeviceModel ReadDevice(const std::string& name_or_path, const RunConfig& run);

/// Returns `topology`, changed where the configuration states a value.
Topology With(const TopologyConfig& stated, Topology topology);

/// A pass that was measured, for people.
struct ProfiledPass {
  std::string module;
  std::string work;  ///< "forward of language.s0, tp 2, 8 samples"
  double measured_ms = 0.0;
  double fitted_ms = 0.0;
  double spread = 0.0;  ///< of its repetitions, a share
};

/// What a file says besides the device.
struct ProfileFacts {
  Precision precision = Precision::kFloat32;
  std::map<std::string, std::string> conditions;  ///< "processor", "cores", "date"
  std::vector<ProfiledPass> passes;
};

/// Returns the file of a device that was measured.
std::string ProfileText(const DeviceModel& device, const ProfileFacts& facts);

}  // namespace troupe
