// Builds a job over all its processes, from process 0: requests the actors of each process from its
// Node, sinks first, because an actor is created with the handles of its receivers.
//
//   traces      every process its own file
//   devices     every process its own
//   lock steps  in the process of the lowest rank of the set
//   updates     in the process of their first shard
//   stages      in reverse topological order, each replica in the process of its first rank; before
//               a stage, the leaders or the phase on its outgoing edges
//   feeds       with the stages they feed, one per process that holds any of them
//   director    in process 0
//
// All requests of a step run concurrently; the next step begins when all are answered.
#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "actors/spawn_actors.hpp"
#include "layout/text.hpp"
#include "plan/peers.hpp"

namespace troupe {
namespace {

/// The stage's module if it is a sink, else empty.
std::string SinkModule(const JobPlan& plan, int stage) {
  const StageNode& node = plan.graph().stages()[At(stage)];
  return node.out.empty() ? plan.ModuleOf(node.module).config->name : "";
}

class JobBuilder : public std::enable_shared_from_this<JobBuilder> {
 public:
  JobBuilder(NodePointer self, std::function<void(const std::string&)> built)
      : self_(self),
        config_(self->state.config),
        plan_(*self->state.config.plan),
        built_(std::move(built)) {}

  void Start() {
    NoteDisks();
    steps_.push_back([this] { Traces(); });
    steps_.push_back([this] { Devices(); });
    steps_.push_back([this] { LockSteps(); });
    steps_.push_back([this] { Updates(); });
    const auto& order = plan_.graph().TopologicalOrder();
    for (auto stage = order.rbegin(); stage != order.rend(); ++stage) {
      steps_.push_back([this, s = *stage] { Receivers(s); });
      steps_.push_back([this, s = *stage] { SourceLeaders(s); });
      steps_.push_back([this, s = *stage] { Stages(s); });
    }
    steps_.push_back([this] { Feeds(); });
    steps_.push_back([this] { TheDirector(); });
    Next();
  }

  void Cancel() { failed_ = true; }

 private:
  LockStep LockStepOf(int rank) const { return lock_steps_.at(plan_.LockStepOf(rank)); }

  /// Says which processes keep their part of checkpoints on disks of their own.
  void NoteDisks() {
    const std::vector<ProcessId>& apart = self_->state.apart;
    if (apart.empty() || !config_.checkpoints.folder) return;
    config_.observer->OnWarning(
        Listed(apart, ", ",
               [&](ProcessId process) { return config_.processes->Of(process).name; }) +
        (apart.size() == 1 ? " does not see " : " do not see ") +
        config_.checkpoints.run_directory +
        ": their parts of checkpoints are written to that path on disks of their own");
  }

  void Next() {
    while (open_ == 0 && !issuing_ && !failed_) {
      if (steps_.empty()) return built_("");
      const auto step = std::move(steps_.front());
      steps_.pop_front();
      issuing_ = true;
      step();
      issuing_ = false;
    }
  }

  template <class Answer, class Request, class Take>
  void Ask(ProcessId process, Request request, Take take) {
    ++open_;
    const auto me = shared_from_this();
    self_->request(self_->state.nodes.at(process), caf::infinite, std::move(request))
        .then(
            [me, take](Answer& answer) {
              take(answer);
              --me->open_;
              me->Next();
            },
            [me](const caf::error& reason) {
              if (std::exchange(me->failed_, true)) return;
              if (IsReceiverGone(reason)) return RaiseFor(me->config_.abort, reason);
              me->built_(FailureOf(reason).text);
            });
  }

  /// Asks for one actor, and puts it into `slot`, which must stay where it is.
  template <class Handle, class Request>
  void AskForActor(ProcessId process, Request request, Handle& slot) {
    Ask<Spawned>(process, std::move(request),
                 [&slot](Spawned& spawned) { slot = caf::actor_cast<Handle>(spawned.actor); });
  }

  ProcessId HomeOfStage(int stage, int dp) const {
    return config_.processes->HomeOf(plan_.RanksOf(stage, dp).front());
  }

  ProcessId HomeOfLeader(int stage, int dp, int part) const {
    return config_.processes->HomeOf(plan_.LeaderRank(stage, dp, part));
  }

  void Devices() {
    for (const auto& [process, node] : self_->state.nodes) {
      Ask<DevicesSpawned>(process, SpawnDevices{}, [this](DevicesSpawned& spawned) {
        devices_.insert(spawned.devices.begin(), spawned.devices.end());
      });
    }
  }

  void LockSteps() {
    std::map<int, SpawnLockStep> requests;
    for (const auto& [rank, set] : plan_.lock_steps()) {
      requests[set].set = set;
      requests[set].devices[rank] = devices_.at(rank);
    }
    for (auto& [set, request] : requests) {
      const ProcessId home = config_.processes->HomeOf(request.devices.begin()->first);
      lock_step_homes_[set] = home;
      AskForActor(home, std::move(request), lock_steps_[set]);
    }
    for (std::size_t stage = 0; stage < plan_.stages().size(); ++stage) {
      const int index = static_cast<int>(stage);
      for (int dp = 0; dp < plan_.GridOfStage(index).layout().dp; ++dp) PassLockStep(index, dp);
    }
  }

  /// Replicas of a stage share a LockStep for their reduction. Every pass of a replica in another
  /// process would cross to that LockStep and back, twice: such a replica gets a second LockStep in
  /// its own process for its passes, unless they need a common order with others. Replicas that share
  /// experts have one together, in the process of the first of them.
  void PassLockStep(int stage, int dp) {
    const std::vector<int> replicas = plan_.LockStepReplicas(stage, dp);
    if (replicas.front() != dp) return;
    const ProcessId home = HomeOfStage(stage, dp);
    if (home == lock_step_homes_.at(plan_.LockStepOf(plan_.RanksOf(stage, dp).front()))) return;
    SpawnLockStep request{.stage = stage, .dp = dp, .devices = {}};
    for (const int replica : replicas) {
      if (!plan_.HasRanksAlone(stage, replica)) return;
      for (const int rank : plan_.RanksOf(stage, replica))
        request.devices[rank] = devices_.at(rank);
    }
    AskForActor(home, std::move(request), pass_lock_steps_[{stage, dp}]);
  }

  void Updates() {
    for (std::size_t u = 0; u < plan_.updates().size(); ++u) {
      const int first = plan_.RanksOf(plan_.updates()[u].stages.front(), 0).front();
      const int index = static_cast<int>(u);
      AskForActor(config_.processes->HomeOf(first), SpawnUpdate{index, LockStepOf(first)},
                  updates_[index]);
    }
  }

  /// The actors at the far end of the stage's outgoing edges: destination leaders, or a phase.
  void Receivers(int stage) {
    for (const int index : plan_.graph().stages()[At(stage)].out) {
      const StageLink& link = plan_.graph().links()[At(index)];
      if (link.edge < 0) continue;
      const auto& receivers = stages_.at(link.to);
      if (plan_.edges()[At(link.edge)].placement == Placement::kDisjoint) {
        const int parts = plan_.PartsAt(index, EdgeEnd::kDestination);
        for (const auto& [dp, receiver] : receivers) {
          for (int part = 0; part < parts; ++part) {
            AskForActor(HomeOfLeader(link.to, dp, part),
                        SpawnDestinationLeader{index, dp, part, receiver},
                        destinations_[index][dp * parts + part]);
          }
        }
        continue;
      }
      const int first = plan_.GridOfStage(link.to).ranks().front();
      SpawnPhase request{index, LockStepOf(first), {}};
      for (const auto& [dp, receiver] : receivers) request.stages.push_back(receiver);
      AskForActor(HomeOfStage(link.to, 0), std::move(request), phases_[index]);
    }
  }

  void SourceLeaders(int stage) {
    for (const int index : plan_.graph().stages()[At(stage)].out) {
      const auto peers = destinations_.find(index);
      if (peers == destinations_.end()) continue;
      const int parts = plan_.PartsAt(index, EdgeEnd::kSource);
      for (int dp = 0; dp < plan_.GridOfStage(stage).layout().dp; ++dp) {
        for (int part = 0; part < parts; ++part) {
          AskForActor(HomeOfLeader(stage, dp, part),
                      SpawnSourceLeader{index, dp, part, peers->second},
                      sources_[index][dp * parts + part]);
        }
      }
    }
  }

  /// The receivers of replica `dp` of the stage, in the order of its outgoing links and their parts.
  std::vector<LinkTarget> TargetsOf(int stage, int dp) const {
    std::vector<LinkTarget> targets;
    for (const int index : plan_.graph().stages()[At(stage)].out) {
      const StageLink& link = plan_.graph().links()[At(index)];
      if (link.edge < 0) {
        targets.push_back({stages_.at(link.to).at(dp), plan_.InputOf(index)});
        continue;
      }
      const auto phase = phases_.find(index);
      if (phase != phases_.end()) {
        targets.push_back({phase->second, dp});
      } else {
        const int parts = plan_.PartsAt(index, EdgeEnd::kSource);
        for (int part = 0; part < parts; ++part) {
          targets.push_back({sources_.at(index).at(dp * parts + part), 0});
        }
      }
    }
    return targets;
  }

  void Stages(int stage) {
    Update update;
    const auto found = updates_.find(plan_.UpdateOf(stage));
    if (found != updates_.end()) update = found->second;
    for (int dp = 0; dp < plan_.GridOfStage(stage).layout().dp; ++dp) {
      SpawnStage request{stage, dp, LockStepOf(plan_.RanksOf(stage, dp).front()),
                         TargetsOf(stage, dp), update};
      const int first = plan_.LockStepReplicas(stage, dp).front();
      if (const auto apart = pass_lock_steps_.find({stage, first});
          apart != pass_lock_steps_.end()) {
        request.devices = apart->second;
      }
      AskForActor(HomeOfStage(stage, dp), std::move(request), stages_[stage][dp]);
    }
  }

  void Feeds() {
    for (std::size_t m = 0; m < plan_.modules().size(); ++m) {
      for (int dp = 0; dp < plan_.modules()[m].grid.layout().dp; ++dp) {
        std::map<ProcessId, SpawnFeed> requests;
        for (const auto& [stage, replicas] : stages_) {
          const StagePlan& plan = plan_.stages()[At(stage)];
          if (plan.module != static_cast<int>(m) || !plan.reads_data) continue;
          SpawnFeed& request = requests[HomeOfStage(stage, dp)];
          request.module = static_cast<int>(m);
          request.dp = dp;
          request.stages.push_back(replicas.at(dp));
        }
        for (auto& [home, request] : requests) {
          AskForActor(home, std::move(request), feeds_.emplace_back());
        }
      }
    }
  }

  void Traces() {
    if (!config_.trace) return;
    for (const auto& [process, node] : self_->state.nodes) {
      Ask<TraceOpened>(process, OpenTrace{config_.trace_folder}, [this](TraceOpened& opened) {
        if (!opened.error.empty()) config_.observer->OnWarning(opened.error);
      });
    }
  }

  /// The stages that an update changes.
  std::set<int> UpdatedStages() const {
    std::set<int> stages;
    for (const auto& update : plan_.updates()) {
      stages.insert(update.stages.begin(), update.stages.end());
    }
    return stages;
  }

  std::map<int, PeerRanks> Peers() const {
    std::map<int, PeerRanks> peers;
    for (const auto& [rank, ranks] : PeersOf(plan_)) {
      const ProcessId home = config_.processes->HomeOf(rank);
      const bool elsewhere = std::ranges::any_of(
          ranks, [&](int peer) { return config_.processes->HomeOf(peer) != home; });
      peers[rank] = {ranks, elsewhere};
    }
    return peers;
  }

  void TheDirector() {
    DirectorConfig config;
    static_cast<JobCourse&>(config) = static_cast<const JobCourse&>(config_);
    for (const auto& [stage, replicas] : stages_) {
      for (const auto& [dp, handle] : replicas) {
        config.stages.push_back(handle);
        config.ranks.push_back(plan_.RanksOf(stage, dp));
        config.names[handle.address()] = plan_.StageActor(stage, dp);
        config.sinks.push_back(SinkModule(plan_, stage));
      }
    }
    config.feeds.assign(feeds_.begin(), feeds_.end());
    for (const auto& [link, phase] : phases_) config.phases.push_back(phase);
    for (const auto& [index, update] : updates_) {
      config.updates.push_back(update);
      config.names[update.address()] = plan_.UpdateActor(index);
    }
    std::map<int, std::vector<std::pair<int, int>>> shards;
    for (const auto& [rank, set] : plan_.lock_steps()) {
      for (const auto& [stage, shard] : plan_.ShardsOn(rank)) {
        shards[set].emplace_back(rank, stage);
      }
    }
    const std::set<int> updated = UpdatedStages();
    for (auto& [set, all] : shards) {
      std::vector<std::pair<int, int>> constant;
      std::ranges::copy_if(all, std::back_inserter(constant),
                           [&](const auto& shard) { return !updated.contains(shard.second); });
      if (!constant.empty()) config.constant_shards.emplace_back(lock_steps_.at(set), constant);
      config.shards.emplace_back(lock_steps_.at(set), std::move(all));
      config.names[lock_steps_.at(set).address()] = LockStepActor(set);
    }
    config.disk = ManifestDisk(self_->state.nodes.at(0));
    std::set<int> machines;
    for (const ProcessId process : self_->state.apart) {
      if (!machines.insert(config_.processes->Of(process).node).second) continue;
      config.apart.emplace_back(self_->state.nodes.at(process));
    }
    if (config_.held) {
      for (const auto& process : config_.processes->processes()) {
        config.holders.emplace_back(self_->state.nodes.at(process.process));
      }
      config.mirrors = MirrorsOf(config_);
    }
    config.open_elsewhere = OpenerOf(self_);
    const ClusterConfig& cluster = plan_.config().cluster;
    config.processes = config_.processes;
    config.slow = SlowRanks({cluster.slow_factor, cluster.slow_steps}, Peers());
    config.optimizer = plan_.config().optimizer;
    config.steps = plan_.config().run.steps;
    config.source = config_.source;
    config.tensors = config_.tensors;
    config.abort = config_.abort;
    const Director director = config_.threads
                                  ? self_->spawn<caf::detached>(RunDirector, std::move(config))
                                  : self_->spawn(RunDirector, std::move(config));
    Adopt(self_, caf::actor_cast<caf::actor>(director), DirectorActor(), true);
    self_->state.director = director;
  }

  NodePointer self_;
  const NodeConfig& config_;
  const JobPlan& plan_;
  std::function<void(const std::string&)> built_;
  std::deque<std::function<void()>> steps_;
  std::size_t open_ = 0;  ///< requests of the current step
  bool issuing_ = false;  ///< the step is still sending requests
  bool failed_ = false;

  std::map<int, Device> devices_;                                 ///< by rank
  std::map<int, LockStep> lock_steps_;                            ///< by set
  std::map<int, ProcessId> lock_step_homes_;                      ///< by set
  std::map<std::pair<int, int>, LockStep> pass_lock_steps_;       ///< by stage and first replica
  std::map<int, Update> updates_;                                 ///< by index in the plan
  std::map<int, std::map<int, Stage>> stages_;                    ///< by stage, then replica
  std::map<int, std::map<int, DestinationLeader>> destinations_;  ///< by link, then shard
  std::map<int, std::map<int, SourceLeader>> sources_;            ///< by link, then shard
  std::map<int, Phase> phases_;                                   ///< by link
  std::deque<Feed> feeds_;
};

}  // namespace

std::function<void()> BuildJob(NodePointer self,
                               std::function<void(const std::string& error)> built) {
  const auto builder = std::make_shared<JobBuilder>(self, std::move(built));
  builder->Start();
  return [builder] { builder->Cancel(); };
}

}  // namespace troupe
