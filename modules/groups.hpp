// The communicators of a job's shards, made before any shard exists and in one order, so that no
// two members can disagree about which group is which.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "cluster/process_plan.hpp"
#include "configs/config.hpp"
#include "modules/stage_program.hpp"
#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/data_plane.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// One shard's views of its groups; a group of one where there is nobody to talk to.
struct ShardGroups {
  std::unique_ptr<Communicator> tensor;     ///< the tp ranks of its stage and replica
  std::unique_ptr<Communicator> data;       ///< the replicas of its stage and tp rank
  std::unique_ptr<Communicator> key_value;  ///< with tp > kv_heads: the ranks that share its heads
  std::unique_ptr<Communicator> tied;       ///< with a tied head: [first stage, last stage]
};

/// Thread-safe.
class GroupTable {
 public:
  /// Groups of all modules that are not inline; `abort` ends every wait in them. Every process of
  /// the job makes the same table; it holds the views of its own ranks. `plane` may be null when
  /// `processes` are one, and must outlive the views; so must `waits`, which may be null.
  GroupTable(const Config& config, const ProcessPlan& processes, DataPlane* plane,
             const std::shared_ptr<AbortSignal>& abort, GroupWaits* waits = nullptr);
  /// All ranks in this process.
  GroupTable(const Config& config, const std::shared_ptr<AbortSignal>& abort);

  /// Hands the shard its views. Throws std::logic_error for a shard that is unknown or was served
  /// before: two threads must never share a view.
  ShardGroups Take(const ShardAddress& shard);

 private:
  using Key = std::tuple<std::string, int, int, int, int>;  ///< module, pp, dp, cp, tp

  std::mutex mutex_;
  std::map<Key, ShardGroups> groups_;
};

/// Ranks of a tp group that hold the same key/value head: 1 unless tp > kv_heads.
int KeyValueSharing(const ModuleConfig& module);

}  // namespace troupe
