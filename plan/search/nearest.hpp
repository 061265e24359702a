// What would make a job fit that does not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/search/planner.hpp"

namespace troupe {

/// A change after which something fits, and the fastest plan then.
struct NearestChange {
  std::string argument;  ///< of `troupe plan`: "--gpus 16"
  Plan plan;
};

/// What there is, and what else there may be.
struct Surroundings {
  std::string device;                ///< its name, or a file
  std::vector<std::string> devices;  ///< that are known
  /// Returns the devices of a job whose main one has that name, for the precision of `config`. May throw
  /// std::runtime_error.
  std::function<JobDevices(const std::string& name, const Config& config)> devices_of;
};

/// Returns changes. Each is enough by itself and is found by a search:
///   - the fewest devices, up to 16 times as many: a power of two inside a node, else whole nodes
///   - the known device with the least memory that is enough
///   - replicas divide the optimizer's state
///   - bfloat16
/// An encoder may have devices of another kind than the other modules. If it does not fit on them, the only change is
/// more of them: up to 16 times as many.
std::vector<NearestChange> NearestChanges(const Config& config, int ranks,
                                          const Surroundings& around);

}  // namespace troupe
