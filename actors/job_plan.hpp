// Who exists in a job and who talks to whom, from the configuration alone. No actor, no device: the
// Node spawns what this says, `troupe check` prints it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.hpp"
#include "layout/stage_graph.hpp"
#include "modules/stage_program.hpp"
#include "schedule/schedule.hpp"
#include "trace/actor_id.hpp"

namespace troupe {

/// One boundary edge. Inline edges are not here: they are inside a stage.
struct EdgePlan {
  std::string name;     ///< "vision>language"
  int config_edge = 0;  ///< index in Config::edges
  int from = 0;         ///< index in JobPlan::modules
  int to = 0;
  Placement placement = Placement::kDisjoint;
  bool carries_gradient = true;
};

/// A module that has stages of its own.
struct ModulePlan {
  const ModuleConfig* config = nullptr;  ///< into JobPlan::config
  Grid grid = Grid({}, {0});
  std::int64_t microbatches_per_unit = 1;  ///< 0 = the whole round
  bool colocated_encoder = false;
};

/// One pipeline stage of one module: the same for all its replicas.
struct StagePlan {
  int stage = 0;           ///< index in the graph
  int module = 0;          ///< index in JobPlan::modules
  int pp = 0;              ///< among the module's stages; on the ranks with pp = this % layout.pp
  std::int64_t limit = 1;  ///< StageGraph::InFlightLimit, and 1 of a colocated encoder
  StageRule rule;          ///< of rounds with backwards; others go by 1f1b with `limit`
  std::int64_t kept = 1;   ///< units at most whose activations it keeps at one time
  bool trains = false;     ///< has trainable parameters: ends a step with an update
  bool runs_backward = false;
  bool reads_data = false;
  std::vector<bool> in_carries_gradient;  ///< by incoming link
  std::vector<std::string> in_source;     ///< by incoming link: the module the rows come from
};

/// Stages whose parameters are reduced and stepped together: one stage, or the first and the last
/// of a module with a tied head.
struct UpdatePlan {
  std::vector<int> stages;
};

class JobPlan {
 public:
  /// Throws LayoutError for what the configuration's own checks cannot see.
  explicit JobPlan(Config config);
  JobPlan(const JobPlan&) = delete;  // plans point into their own configuration
  JobPlan& operator=(const JobPlan&) = delete;

  const Config& config() const { return config_; }
  const std::vector<ModulePlan>& modules() const { return modules_; }
  const std::vector<EdgePlan>& edges() const { return edges_; }
  const StageGraph& graph() const { return graph_; }
  const std::vector<StagePlan>& stages() const { return stages_; }
  const std::vector<UpdatePlan>& updates() const { return updates_; }
  /// The rules of all stages, for Simulate; its devices stand for one replica's tp ranks.
  const Schedule& schedule() const { return schedule_; }
  /// What the stages on `rank` run in every training round, in which order; null: as they decide.
  const DeviceOrder* OrderOn(int rank) const;

  /// Config::samples_per_microbatch, which searches the graph for its sink.
  std::int64_t samples_per_microbatch() const { return samples_per_microbatch_; }

  /// The lock-step set of a rank: ranks with the same number share collectives, directly or through
  /// others, and take all their commands through one LockStep.
  int LockStepOf(int rank) const { return lock_step_.at(rank); }
  /// Every rank that a module uses, with its lock-step set.
  const std::map<int, int>& lock_steps() const { return lock_step_; }

  /// Whether the ranks of a stage's replica have no other stage. Then its passes are under way only
  /// while no other command for these ranks is: the reduction and the update follow the last pass
  /// of a round, and the next round's passes follow them.
  bool HasRanksAlone(int stage, int dp) const;

  /// What lives on `rank`, by stage index.
  std::map<int, ShardAddress> ShardsOn(int rank) const;
  std::string StageName(int stage, int dp) const;  ///< "vision.s0 dp1"

  const ModulePlan& ModuleOf(int module) const {
    return modules_[static_cast<std::size_t>(module)];
  }
  const Grid& GridOfStage(int stage) const;
  /// Ranks of one replica of a stage, tp fastest. The first is the boundary leader's, and where the
  /// stage's own actor lives.
  std::vector<int> RanksOf(int stage, int dp) const;
  /// (rank, stage) of every shard of the module that offloads its state; empty: none does.
  std::vector<std::pair<int, int>> OffloadsOf(int module) const;
  /// Gradients that each replica of the edge's destination owes when that state begins to come
  /// back.
  std::int64_t RestoreAheadOf(const EdgePlan& edge) const;
  /// Index in updates() of the one that takes the stage's parameters; -1: it has none that train.
  int UpdateOf(int stage) const;

  // Who the actors are.
  ActorId StageActor(int stage, int dp) const;
  ActorId UpdateActor(int update) const;
  ActorId FeedActor(int module, int dp) const;
  /// Of the set of ranks that the stage's replica is in, and of the passes of that replica alone.
  ActorId LockStepActorOf(int stage, int dp) const;
  ActorId PassLockStepActor(int stage, int dp) const;
  /// The actor that stage replica `dp`, at that end of the graph's link, exchanges activations and
  /// gradients with: its leader or the phase at a boundary, else the stage at the other end.
  ActorId ActorAt(int link, EdgeEnd end, int dp) const;
  /// Place of the graph's link among the incoming ones of the stage it leads to.
  int PlaceOf(int link) const;

 private:
  void AddModules();
  void AddEdges();
  void AddStages();
  void AddUpdates();
  void JoinLockSteps();
  void AddSchedule();
  std::vector<std::int64_t> RoomBefore() const;
  std::vector<DeviceOrder> OrdersOfSink(int sink) const;
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
};

}  // namespace troupe
