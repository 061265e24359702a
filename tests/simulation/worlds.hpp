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
  kFullDisk,  ///< as kDisk; the disk is full for a while, and the job is started again if it fails
};
inline constexpr int kNumWorldKinds = 7;
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
  /// As Run, in the run directory of the world before, if that was not removed.
  WorldEnd RunOn(std::uint64_t seed, WorldKind kind, const std::function<void(JobWorld&)>& plan);

  /// Starts the job again that failed because the disk was full, now with space.
  void GoOnWithSpace(std::uint64_t seed, WorldKind kind, WorldEnd& failed);

  std::string directory_;
  std::map<WorldKind, std::vector<double>> losses_;  ///< of undisturbed jobs
};

}  // namespace troupe::testing
