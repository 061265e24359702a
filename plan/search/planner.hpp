// Plans: the choices of a search, played by the simulation of their schedules, which decides among those
// that the closed form cannot tell apart.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "plan/cost/job_cost.hpp"
#include "plan/search/space.hpp"
#include "plan/utilisation.hpp"

namespace troupe {

/// The search hands over the choices within this factor of its best.
inline constexpr double kHandedOver = 1.05;
/// At most this many of them are simulated, the best ones.
inline constexpr std::size_t kMostSimulated = 64;

/// What a device needs, and has.
struct FilledDevice {
  double bytes = 0.0;
  double of_bytes = 0.0;  ///< 0: not known
  double share() const { return of_bytes > 0.0 ? bytes / of_bytes : 0.0; }
};

struct Plan {
  PlannedJob job;
  Config config;  ///< Applied
  JobCost cost;
  double bubble = 0.0;              ///< share of the step in which ranks compute nothing
  double sending = 0.0;             ///< share of the ranks' passes that waits for collectives
  double bytes = 0.0;               ///< of the rank that holds most
  FilledDevice fullest = {};        ///< of the device of which most is in use
  Utilisation use = {};             ///< no parts: the peak of a device is not known
  std::vector<int> own_ranks = {};  ///< of modules with devices of another kind, in their order
  bool fits() const { return fullest.share() <= 1.0; }
};

/// Returns the plan of a job. Throws LayoutError if it cannot run.
Plan PlanOf(const Config& config, const PlannedJob& job, const JobDevices& devices,
            const Workload& workload = {});
/// Returns `config` as it stands as a plan, whose job has nothing but the number of ranks. Throws LayoutError
/// if it cannot run.
Plan PlanAsIs(const Config& config, const JobDevices& devices, const Workload& workload = {});

/// A plan with at most this share of the devices of the best one has clearly fewer.
inline constexpr double kClearlyFewer = 0.9;
/// A step at most so many times as long is about as fast.
inline constexpr double kAboutAsFast = 1.01;

/// The plans that a search found.
struct Plans {
  std::vector<Plan> best;  ///< the fastest first
  std::size_t others = 0;  ///< fit as well, but are not among them
  std::size_t twins = 0;   ///< of some in `best`, left out
  std::optional<Plan>
      smaller;  ///< of those about as fast that have clearly fewer devices, the smallest
};

/// Returns whether two plans differ in nothing but the direction in which samples are divided: as many
/// ranks along cp and dp together, the same number of microbatches, all else alike, and steps whose times
/// differ by less than 0.1 %.
bool AreTwins(const Plan& a, const Plan& b);

/// Called before a plan is simulated: its number from 0 on, and of how many.
using PlanProgress = std::function<void(std::size_t number, std::size_t all)>;

/// Returns the fastest plans, at most `most`, of twins the first. Those that need more memory than there
/// is, by the estimate that `troupe check` prints, are left out.
Plans BestPlans(const SearchSpace& space, const Config& config, const JobDevices& devices,
                std::size_t most, const PlanProgress& progress = nullptr,
                const Workload& workload = {});

}  // namespace troupe
