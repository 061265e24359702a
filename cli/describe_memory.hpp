// What a job needs of memory, estimated from shapes, in words: the last tables of `troupe check`.
// Nothing is refused because of them.
#pragma once

#include <string>

#include "actors/job_plan.hpp"

namespace troupe {

/// One line per stage and rank set: estimated bytes. Empty where nothing computes.
std::string MemoryTable(const JobPlan& plan);

/// What the modules that offload save where, or why nothing. Empty where none does.
std::string OffloadText(const JobPlan& plan);

/// One line per GPU of backend "cuda": its node, its number there, its ranks, and their estimates
/// together. Empty for other backends.
std::string GpuTable(const JobPlan& plan);

}  // namespace troupe
