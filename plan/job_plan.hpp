// The actors of a job and their connections, from the configuration alone, without actors or
// devices. The Node spawns these actors; `troupe check` prints them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.hpp"
#include "layout/at.hpp"
#include "layout/ids.hpp"
#include "layout/stage_graph.hpp"
#include "plan/unit_samples.hpp"
#include "schedule/schedule.hpp"
#include "schedule/simulate.hpp"
#include "trace/actor_id.hpp"

namespace troupe {

/// One boundary edge. Inline edges are inside a stage and not listed here.
struct EdgePlan {
  std::string name;  ///< "vision>language"
  int from = 0;      ///< index in JobPlan::modules
  int to = 0;
  Placement placement = Placement::kDisjoint;
  bool carries_gradient = true;
};

/// A module that has its own stages.
struct ModulePlan {
  const ModuleConfig* config = nullptr;  ///< into JobPlan::config
  Grid grid = Grid({}, {0});
  UnitLength units;
  bool colocated_encoder = false;
};

/// One pipeline stage of one module, the same for all replicas.
struct StagePlan {
  int stage = 0;           ///< index in the graph
  int module = 0;          ///< index in JobPlan::modules
  int pp = 0;              ///< among the module's stages; on the ranks with pp = this % layout.pp
  std::int64_t limit = 1;  ///< StageGraph::InFlightLimit; 1 for a colocated encoder
  StageRule rule;          ///< for rounds with backwards; others use 1f1b with `limit`
  std::int64_t kept = 1;   ///< the most units whose activations it keeps at one time
  bool trains = false;     ///< has trainable parameters: ends a step with an update
  bool runs_backward = false;
  bool reads_data = false;
  struct Incoming {
    std::string source;             ///< the module that emits the rows
    bool carries_gradient = false;  ///< something upstream of the link trains
  };
  std::vector<Incoming> in;  ///< by incoming link
};

/// Stages whose parameters are reduced and updated together: one stage, or the first and the last
/// of a module with a tied head.
struct UpdatePlan {
  std::vector<int> stages;
};

class JobPlan {
 public:
  /// Throws LayoutError for errors that the configuration's own checks cannot find.
  explicit JobPlan(Config config);
  JobPlan(const JobPlan&) = delete;  // plans point into their own configuration
  JobPlan& operator=(const JobPlan&) = delete;

  const Config& config() const { return config_; }
  const std::vector<ModulePlan>& modules() const { return modules_; }
  const std::vector<EdgePlan>& edges() const { return edges_; }
  const StageGraph& graph() const { return graph_; }
  const std::vector<StagePlan>& stages() const { return stages_; }
  const std::vector<UpdatePlan>& updates() const { return updates_; }
  /// The rules of all stages, for Simulate. Its devices represent one replica's tp ranks.
  const Schedule& schedule() const { return schedule_; }
  /// One training round whose passes all take the same time: the order in which stages keep units and
  /// release them.
  const Simulation& equal_passes() const { return equal_passes_; }
  /// Returns the order of passes on `rank` in every training round; null if its stages decide
  /// themselves.
  const DeviceOrder* OrderOn(int rank) const;

  /// Caches Config::samples_per_microbatch, which searches the graph for its sink.
  std::int64_t samples_per_microbatch() const { return samples_per_microbatch_; }

  /// Returns the lock-step set of a rank. Ranks of a set share collectives, directly or through
  /// others, and receive all their commands through one LockStep.
  int LockStepOf(int rank) const { return lock_step_.at(rank); }
  /// Returns every rank that a module uses, with its lock-step set.
  const std::map<int, int>& lock_steps() const { return lock_step_; }

  /// Returns whether the ranks of a stage's replica have no other stage. If so, its passes never
  /// run concurrently with other commands for these ranks: the reduction and the update follow the
  /// last pass of a round, and the next round's passes follow them.
  bool HasRanksAlone(int stage, int dp) const;

  /// Returns the shards on `rank`, by stage index.
  std::map<int, ShardAddress> ShardsOn(int rank) const;
  std::string StageName(int stage, int dp) const;  ///< "vision.s0 dp1"

  const ModulePlan& ModuleOf(int module) const { return modules_[At(module)]; }
  const Grid& GridOfStage(int stage) const;
  /// Returns the ranks of one replica of a stage, tp fastest. The stage's actor is on the first.
  std::vector<int> RanksOf(int stage, int dp) const;
  /// Returns the ranks of all its replicas.
  std::vector<int> AllRanksOf(const StagePlan& stage) const;
  /// Returns the rank of the boundary leader of a replica's part along cp.
  int LeaderRank(int stage, int dp, int part) const;
  /// Returns (rank, stage) of every shard of the module that offloads its state; empty if none
  /// does.
  std::vector<std::pair<int, int>> OffloadsOf(int module) const;
  /// Returns the gradients that each replica of the edge's destination owes when that state begins
  /// to come back.
  std::int64_t RestoreAheadOf(const EdgePlan& edge) const;
  /// Returns the replicas that have to run the passes of a stage in one order with replica `dp`, that one
  /// included: those with which it shares experts.
  std::vector<int> LockStepReplicas(int stage, int dp) const;
  /// Returns the index in updates() of the update with the stage's parameters; -1: it has none that
  /// train.
  int UpdateOf(int stage) const;

  // Actor ids.
  ActorId StageActor(int stage, int dp) const;
  ActorId UpdateActor(int update) const;
  ActorId FeedActor(int module, int dp) const;
  /// Returns the lock step for the passes of that replica alone.
  ActorId PassLockStepActor(int stage, int dp) const;
  /// Returns the actor with which stage replica `dp`, at that end of the graph's link, exchanges
  /// activations and gradients: its leader or the phase at a boundary, else the stage at the other
  /// end.
  /// A leader is that of the replica's `part` along cp.
  ActorId ActorAt(int link, EdgeEnd end, int dp, int part = 0) const;
  /// Returns how many of these actors a replica has at that end: one, or with leaders one for each part
  /// along cp.
  int PartsAt(int link, EdgeEnd end) const;
  /// Returns how the module at that end of a boundary cuts its rows.
  RowCut CutAt(int link, EdgeEnd end) const;
  /// Returns the number of the link's first input among those of its destination stage, where each of
  /// PartsAt is one.
  int InputOf(int link) const;

 private:
  void AddModules();
  void AddEdges();
  void AddStages();
  void AddUpdates();
  void JoinLockSteps();
  void AddSchedule();
  /// What can be on its way to a stage before its gradients return.
  struct Room {
    std::int64_t microbatches = 0;
    bool windows = false;  ///< windows of a colocated encoder alternate with their backwards
  };
  std::vector<Room> RoomBefore() const;
  std::vector<DeviceOrder> OrdersOfSink(int sink) const;
  void Fix(StageRule& rule, const Room& room) const;
  std::vector<int> DevicesOf(const StagePlan& stage, const std::vector<int>& first_devices) const;
  void OrderSink(const std::vector<int>& first_devices);
  void CountKept();

  Config config_;
  std::int64_t samples_per_microbatch_ = 0;
  std::vector<ModulePlan> modules_;
  std::vector<EdgePlan> edges_;
  StageGraph graph_ = StageGraph({}, {});
  std::vector<StagePlan> stages_;
  std::vector<UpdatePlan> updates_;
  std::map<int, int> lock_step_;
  Schedule schedule_;
  Simulation equal_passes_;
};

}  // namespace troupe
