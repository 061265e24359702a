// Prints the memory that a job needs, estimated from shapes: the last tables of `troupe check`.
// Nothing is refused because of an estimate.
#pragma once

#include <string>

#include "plan/job_plan.hpp"

namespace troupe {

/// One line per stage and rank set: estimated bytes. Empty if no module computes.
std::string MemoryTable(const JobPlan& plan);

/// The bytes that each offloading module saves on its ranks, or why it saves none. Empty without
/// offloading.
std::string OffloadText(const JobPlan& plan);

/// One line per GPU of backend "cuda": its node, its number there, its ranks, and the sum of their
/// estimates. Empty for other backends.
std::string GpuTable(const JobPlan& plan);

}  // namespace troupe
