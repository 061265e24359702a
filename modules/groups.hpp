// The communicators of a job's shards, made before any shard exists and in one order, so that no
// two members can disagree about which group is which.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "configs/config.hpp"
#include "modules/stage_program.hpp"
#include "modules/work_queue.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/process_plan.hpp"
#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/data_plane.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// The views that one shard has of the holders of the same parameters.
struct HolderGroups {
  /// Those that update the same ones: all of them unless optimizer.shard = "data", else one of each
  /// instance.
  std::unique_ptr<Communicator> data;
  std::unique_ptr<Communicator> shards;  ///< those of its optimizer instance
};

/// The views that one shard has of its groups; a shard without peers has a group of one.
struct ShardGroups {
  std::unique_ptr<Communicator> tensor;   ///< the tp ranks of its stage, replica and cp
  std::unique_ptr<Communicator> context;  ///< the cp ranks of its stage, replica and tp
  HolderGroups others;                    ///< the ranks along dp and cp of its stage and tp rank
  HolderGroups experts;                  ///< those along expert-dp; none in a stage without experts
  std::unique_ptr<Communicator> expert;  ///< the ranks that exchange tokens; none likewise
  /// The ranks that add up how many tokens each expert gets; none likewise.
  std::unique_ptr<Communicator> balance;
  std::unique_ptr<Communicator> key_value;  ///< with tp > kv_heads: the ranks that share its heads
  std::unique_ptr<Communicator> summed;     ///< the tp ranks again, for gradients of Cut::kSummed
  std::unique_ptr<Communicator> tied;       ///< with a tied head: [first stage, last stage]
};

/// Wraps a rank's view of a group so that its device runs the collectives: on `lane` of its queue, or
/// without one on a separate stream, for StartedOperations.
using DeviceGroupMaker =
    std::function<std::unique_ptr<Communicator>(int rank, std::unique_ptr<Communicator> host,
                                                const GroupNames& names, std::optional<Lane> lane)>;

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

  /// Replaces all views of a rank by the results of `make`. Every rank of the job calls it
  /// once, on its own thread and before it takes any: groups come in one order that is the same in
  /// all of the job, so `make` may wait for the other members.
  void OnDevice(int rank, const DeviceGroupMaker& make);

  /// Hands the shard its views. Throws std::logic_error for a shard that is unknown or was served
  /// before: two threads must never share a view.
  ShardGroups Take(const ShardAddress& shard);

 private:
  using Key = std::tuple<std::string, int, int, int, int>;  ///< module, pp, dp, cp, tp

  /// Returns one of a shard's views. A function, since some are inside other structs.
  using View = std::unique_ptr<Communicator>& (*)(ShardGroups&);
  static std::optional<Lane> LaneOf(View view);
  struct Membership {
    Key shard;
    View view = nullptr;
    GroupNames names;
  };
  /// A module and the parts that its groups are made from.
  struct Peers {
    const ModuleConfig& module;
    StateShardings shardings;
    Grid grid;
    const ProcessPlan& processes;
    DataPlane* plane;
    const std::shared_ptr<AbortSignal>& abort;
    GroupWaits* waits;
  };

  /// Makes all groups of a module.
  void JoinAll(const Peers& peers);
  /// Makes those of experts that begin at a shard.
  void JoinExperts(const Peers& peers, const Coordinates& at);
  /// Makes one group of `kind` and gives the members that live in this process their views.
  void Join(const Peers& peers, const char* kind, View view,
            const std::vector<Coordinates>& members);

  std::mutex mutex_;
  std::map<Key, ShardGroups> groups_;
  std::map<int, std::vector<Membership>> memberships_;  ///< by rank of this process, in the order
};

/// Ranks of a tp group that hold the same key/value head: 1 unless tp > kv_heads.
int KeyValueSharing(const ModuleConfig& module);

}  // namespace troupe
