// The jobs that the tests run in simulated worlds, and what happens to them there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/job_world.hpp"

namespace troupe::testing {

/// What the seed decides about a world, beyond the order of its events.
enum class WorldKind {
  kDisk,      ///< states on the disk only
  kMirrors,   ///< also in the memory of a peer
  kPipeline,  ///< one module in stages; checkpoints are written while all wait
  kSpare,     ///< as kMirrors; a machine is lost for good, and a spare waits
  kWide,      ///< four machines; every second state, in the memory of two peers
  kElastic,   ///< a machine is lost for long or for good; the others go on without it
};
inline constexpr int kNumWorldKinds = 6;
WorldKind KindOf(std::uint64_t seed);

/// Draws what happens to a job.
void DrawFaults(JobWorld& world, WorldKind kind);

class Worlds {
 public:
  Worlds();
  ~Worlds();
  Worlds(const Worlds&) = delete;
  Worlds& operator=(const Worlds&) = delete;

  /// What happens to the job of `kind` with nothing but the faults of `plan`.
  WorldEnd Run(std::uint64_t seed, WorldKind kind, const std::function<void(JobWorld&)>& plan);
  /// The world of a seed, checked. An empty fault means that it ended as the undisturbed job of its kind.
  WorldEnd RunSeed(std::uint64_t seed);

 private:
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  std::map<WorldKind, std::vector<double>> losses_;  ///< of undisturbed jobs
};

}  // namespace troupe::testing
