// Devices by their public specifications. Nothing here was measured: `source` says where each number is
// from, and the shares of the peak that are reached are those of the paper's calibration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/device.hpp"

namespace troupe {

struct DeviceSpecification {
  std::string_view name;
  std::string_view source;
  double memory_gb = 0.0;  ///< 10^9 bytes
  double memory_gb_per_s = 0.0;
  double bf16_tflops = 0.0;  ///< dense, as all peaks
  double tf32_tflops = 0.0;
  double fp32_tflops = 0.0;
  double fp64_tflops = 0.0;
  int devices_per_node = 8;
  double inside_gb_per_s = 0.0;   ///< between devices of a node, of each, in one direction
  double between_gb_per_s = 0.0;  ///< between nodes, likewise
};

const std::vector<DeviceSpecification>& KnownDevices();

/// Returns `topology`, changed where the configuration states a value.
Topology With(const TopologyConfig& stated, Topology topology);

/// Returns what the specification says for a run of that precision.
DeviceModel DeviceModelOf(const DeviceSpecification& device, const RunConfig& run);

}  // namespace troupe
