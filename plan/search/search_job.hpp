// What a search is about: the modules, the devices and the limits; and the numbers that it tries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/job_devices.hpp"
#include "plan/search/alike_layers.hpp"
#include "plan/search/space.hpp"

namespace troupe {

struct SearchJob {
  /// Throws LayoutError for a graph other than one sink that all others feed directly.
  SearchJob(const Config& base, const JobDevices& given, const SearchLimits& most);

  const ModuleConfig& Sink() const;
  const ModuleConfig& Encoder(std::size_t encoder) const;
  /// Returns the configuration with the module's layers divided in one way.
  Config With(const std::string& module, const Layout& layout, const Recompute& recompute,
              unsigned inlined) const;
  /// Returns whether the ranks of a stage can be divided among experts and optimizer instances.
  bool IsLegal(const ModuleConfig& module) const;
  AlikeLayers& LayersOf(const std::string& module) { return layers.at(module); }

  /// Returns the bytes that a rank of a device may have.
  double MostBytesOn(const DeviceModel& device) const;
  const DeviceModel& DeviceOf(std::size_t encoder) const { return devices.Of(encoders[encoder]); }
  bool HasOwnDevices(std::size_t encoder) const { return devices.HasOwn(encoders[encoder]); }

  Config config;
  JobDevices devices;
  SearchLimits limits;
  std::string sink;
  std::vector<std::string> encoders;  ///< in the order of the file
  std::int64_t global_batch = 0;
  double most_bytes = 0.0;                    ///< MostBytesOn the main device
  std::map<std::string, AlikeLayers> layers;  ///< by module
};

/// From keeping all to keeping little.
const std::vector<Recompute>& RecomputeLevels();

std::vector<std::int64_t> PowersOfTwo(std::int64_t most);
std::vector<std::int64_t> DivisorsOf(std::int64_t number);
/// Divisors from `number` itself down to 1: each the largest that is at most half of the one before.
std::vector<std::int64_t> HalvesOf(std::int64_t number);

}  // namespace troupe
