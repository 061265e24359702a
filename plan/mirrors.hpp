// Which processes hold the state of which shards in memory (checkpoint.replicas).
//
// Shards at the same place of a stage in different optimizer instances hold the same parameters and
// moments. The first of them stores them in its file. For a mirror, one of the others in another process
// makes the same file from its own state, so nothing is sent. What no such replica can make is sent.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "layout/ids.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

class JobPlan;

/// Rank and stage of a shard.
using ShardPlace = std::pair<int, int>;

struct MirrorPlan {
  /// Files that one process fetches from another.
  struct Sent {
    ProcessId holder = 0;
    ProcessId process = 0;
    std::vector<ShardPlace> shards;  ///< of `process`
    friend bool operator==(const Sent&, const Sent&) = default;
  };
  std::vector<Sent> sent;
  /// Replicas that make the file of another shard: by replica, that shard. They store nothing else.
  std::map<ShardPlace, ShardAddress> made;
};

/// Plans `replicas` mirrors of the file of each shard that may store something, or as many as there are
/// other processes. Each is on another node, as long as there are nodes: a node may fail as a whole. A
/// mirror that a replica makes comes before one that is sent to an equally good node.
MirrorPlan PlanMirrors(const JobPlan& plan, const ProcessPlan& processes, std::int64_t replicas);

}  // namespace troupe
