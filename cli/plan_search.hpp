// The search for plans, as verbs run it.
#pragma once

#include <cstddef>
#include <string>

#include "configs/config.hpp"
#include "plan/cost/job_devices.hpp"
#include "plan/search/planner.hpp"

namespace troupe {

struct SearchedPlans {
  Plans plans;
  std::string how;  ///< "52 ways to run language, 12 of them priced in full, searched in 0.02 s\n"
};

/// Returns the best plans on `ranks` devices of the main kind, at most `top`; none if nothing fits. A search that takes long
/// reports its progress on stderr. Throws LayoutError for a configuration that cannot be planned.
SearchedPlans SearchPlans(const Config& config, const JobDevices& devices, int ranks,
                          std::size_t top, const Workload& workload);

}  // namespace troupe
