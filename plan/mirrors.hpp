// Which processes hold mirrors of the memory of which others (checkpoint.replicas).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/process_plan.hpp"

namespace troupe {

struct MirrorOf {
  ProcessId holder = 0;
  ProcessId process = 0;  ///< whose files it holds
  friend bool operator==(const MirrorOf&, const MirrorOf&) = default;
};

/// Returns `replicas` mirrors of each process, or as many as there are other processes. On other nodes
/// first: a node may fail as a whole. If all nodes have as many processes, each process holds as many.
std::vector<MirrorOf> PlanMirrors(const ProcessPlan& processes, std::int64_t replicas);

}  // namespace troupe
