// Plans: the choices of a search, played by the simulation of their schedules, which decides among those
// that the closed form cannot tell apart.
#pragma once

#include <string>
#include <vector>

#include "plan/cost/job_cost.hpp"
#include "plan/search/space.hpp"

namespace troupe {

/// The search hands over the choices within this factor of its best.
inline constexpr double kHandedOver = 1.05;
/// At most this many of them are simulated, the best ones.
inline constexpr std::size_t kMostSimulated = 64;

struct Plan {
  PlannedJob job;
  Config config;  ///< Applied
  JobCost cost;
  double bubble = 0.0;   ///< share of the step in which ranks compute nothing
  double sending = 0.0;  ///< share of the ranks' passes that waits for collectives
  double bytes = 0.0;    ///< of the rank that holds most
  double mfu = 0.0;      ///< 0: the peak of the device is not known
};

/// Returns the plan of a job. Throws LayoutError if it cannot run.
Plan PlanOf(const Config& config, const PlannedJob& job, const DeviceModel& device);

/// Returns the fastest plans, best first, at most `most`. Those that need more memory than
/// there is, by the estimate that `troupe check` prints, are left out.
std::vector<Plan> BestPlans(const SearchSpace& space, const Config& config,
                            const DeviceModel& device, std::size_t most);

}  // namespace troupe
