// The ranks that do the same work in every step, so that their times can be compared.
#pragma once

#include <map>
#include <vector>

#include "plan/job_plan.hpp"

namespace troupe {

/// Returns every rank of the job with the others that have the same stages, the same part along cp
/// and the same experts: those along tp and dp.
std::map<int, std::vector<int>> PeersOf(const JobPlan& plan);

}  // namespace troupe
