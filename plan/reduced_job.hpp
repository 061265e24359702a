// A job that goes on without some of its processes (cluster.elastic): which sizes dp gets, and which
// ranks live where. A pure function of the configuration and of the processes that are there, so every
// process computes the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "layout/ids.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

struct ReducedJob {
  /// As that of the whole job, with fewer ranks, smaller dp, and more microbatches of the same size: a
  /// step has the same samples.
  Config config;
  ProcessPlan processes;  ///< the present ones, numbered anew
};

struct Reduction {
  std::optional<ReducedJob> job;
  std::string why_not;  ///< without `job`: "it needs at least 5 ranks, and 4 are left"
};

/// Returns the job of the processes `present` of `planned`, ascending. All processes of the whole job
/// make the job itself.
///
/// Modules on the same ranks shrink together. The sizes are those with which the module that shrinks most,
/// relative to its size, shrinks least. Ranks that are left over go to the module that defines the
/// microbatch, then to the others.
/// The global batch must divide into whole microbatches, and the configuration must be legal.
/// Ranks are numbered anew, in the order of the nodes. A node counts if all its processes are present.
/// Processes that get no rank stay in the job and hold states in memory.
Reduction ReduceJob(const Config& whole, const ProcessPlan& planned,
                    const std::vector<ProcessId>& present);

/// Returns what differs: "8 of 12 ranks, vision dp 4 of 8".
std::string ReductionText(const Config& whole, const Config& reduced);

}  // namespace troupe
