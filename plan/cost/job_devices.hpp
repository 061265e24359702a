// The devices of a job: of one kind, but for modules that have devices of another kind.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "plan/cost/device.hpp"

namespace troupe {

/// Devices that one module has to itself.
struct OwnDevices {
  DeviceModel device;
  int number = 0;
};

struct JobDevices {
  /// All of one kind. Functions that take the devices of a job take a device too.
  JobDevices(DeviceModel device)
      : main(std::move(device)) {}  // NOLINT(google-explicit-constructor)

  DeviceModel main;
  std::map<std::string, OwnDevices> own = {};  ///< by module

  bool HasOwn(const std::string& module) const { return own.contains(module); }
  const DeviceModel& Of(const std::string& module) const {
    const auto found = own.find(module);
    return found == own.end() ? main : found->second.device;
  }
  /// Returns the link between the devices of two modules, one of which has its own: they are in different nodes.
  LinkRate Between(const std::string& a, const std::string& b) const {
    const LinkRate& first = Of(a).topology.between;
    const LinkRate& second = Of(b).topology.between;
    return {std::max(first.latency_s, second.latency_s),
            std::min(first.bytes_per_s, second.bytes_per_s)};
  }
};

}  // namespace troupe
