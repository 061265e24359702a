// A job plan in words: the tables that `troupe check` and the start of a run print.
#pragma once

#include <string>

#include "actors/job_plan.hpp"
#include "cluster/join.hpp"
#include "cluster/process_plan.hpp"

namespace troupe {

/// One line per module: kind, layout, ranks, stages, microbatches.
std::string LayoutTable(const JobPlan& plan);
/// One line per stage: its layers, distance to the sink, units in flight, what flows in and out.
std::string StageTable(const JobPlan& plan);
/// One block per edge: placement, and which source replica gives which samples of a microbatch to
/// which destination replica.
std::string RouteTable(const JobPlan& plan);

/// One line per process of a job of several, nothing for one: its ranks and the stages on them, and
/// with `roster` the address and process id of those that have met.
std::string ProcessTable(const JobPlan& plan, const ProcessPlan& processes, const Roster* roster);

}  // namespace troupe
