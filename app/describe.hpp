// Prints a job plan as the tables of `troupe check` and of the start of a run.
#pragma once

#include <string>

#include "cluster/join.hpp"
#include "plan/job_plan.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

/// One line per module: kind, layout, ranks, stages, microbatches.
std::string LayoutTable(const JobPlan& plan);
/// One line per stage: its layers, distance to the sink, units in flight, inputs and outputs.
std::string StageTable(const JobPlan& plan);
/// One block per edge: placement, and the samples of a microbatch that each source replica sends to
/// each destination replica.
std::string RouteTable(const JobPlan& plan);

/// One line per process: its ranks and the stages on them, and with `roster` the address and
/// process id of each. Empty for a job of one process.
std::string ProcessTable(const JobPlan& plan, const ProcessPlan& processes, const Roster* roster);

}  // namespace troupe
