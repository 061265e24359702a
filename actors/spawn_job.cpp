#include "actors/spawn_job.hpp"

#include <algorithm>
#include <utility>

#include "actors/boundary_leader.hpp"
#include "actors/device_actor.hpp"
#include "actors/feed_actor.hpp"
#include "actors/lock_step_actor.hpp"
#include "actors/phase_actor.hpp"
#include "actors/stage_actor.hpp"
#include "actors/tracer_actor.hpp"
#include "actors/update_actor.hpp"

namespace troupe {
namespace {

using Self = ActorPointer<Node, NodeState>;

class Spawner {
 public:
  explicit Spawner(Self self) : self_(self), s_(self->state), plan_(*self->state.config.plan) {}

  void SpawnAll() {
    SpawnDevices();
    SpawnUpdates();
    const auto& order = plan_.graph().TopologicalOrder();
    for (auto stage = order.rbegin(); stage != order.rend(); ++stage) SpawnStages(*stage);
    SpawnFeeds();
    SpawnTracer();
    SpawnDirector();
  }

 private:
  /// Spawns an actor that the node owns and watches; `threaded` ones get a thread where allowed.
  template <class Handle, class Run, class ActorConfig>
  Handle Spawn(const std::string& name, bool threaded, Run run, ActorConfig config) {
    const Handle handle = threaded && s_.config.threads
                              ? self_->template spawn<caf::detached>(run, std::move(config))
                              : self_->spawn(run, std::move(config));
    self_->monitor(handle);
    s_.children.emplace(handle.address(), name);
    s_.owned.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  const ModulePlan& ModuleOf(int stage) const {
    const auto module = plan_.stages()[static_cast<std::size_t>(stage)].module;
    return plan_.modules()[static_cast<std::size_t>(module)];
  }
  LockStep LockStepOf(int rank) const { return lock_steps_.at(plan_.LockStepOf(rank)); }

  void SpawnDevices() {
    std::map<int, DeviceConfig> configs;
    for (const auto& [rank, unused] : plan_.lock_steps()) {
      DeviceConfig& config = configs[rank];
      config.rank = rank;
      config.shards = plan_.ShardsOn(rank);
      config.make_program = s_.config.make_program;
      config.setup_thread = s_.config.setup_thread;
      config.abort = s_.config.abort;
      const auto ring = s_.config.rings.find(rank);
      if (ring != s_.config.rings.end()) config.ring = ring->second;
    }
    for (std::size_t e = 0; e < plan_.edges().size(); ++e) {
      if (plan_.edges()[e].placement != Placement::kColocated) continue;
      const auto& ranks = GroupRanks(plan_.edges()[e]);
      auto members = MakeLocalGroup(static_cast<int>(ranks.size()), s_.config.abort);
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        configs[ranks[i]].groups[static_cast<int>(e)] = std::move(members[i]);
      }
    }
    std::map<int, std::map<int, Device>> sets;
    for (auto& [rank, config] : configs) {
      sets[plan_.LockStepOf(rank)][rank] =
          Spawn<Device>("device " + std::to_string(rank), true, RunDevice, std::move(config));
    }
    for (auto& [set, devices] : sets) {
      lock_steps_[set] = Spawn<LockStep>("lock step " + std::to_string(set), false, RunLockStep,
                                         std::move(devices));
    }
  }

  const std::vector<int>& GroupRanks(const EdgePlan& edge) const {
    return plan_.modules()[static_cast<std::size_t>(edge.to)].grid.ranks();
  }

  void SpawnUpdates() {
    for (const UpdatePlan& update : plan_.updates()) {
      UpdateConfig config;
      config.abort = s_.config.abort;
      config.replicas = 0;
      for (const int stage : update.stages) {
        const Grid& grid = ModuleOf(stage).grid;
        config.replicas += grid.layout().dp;
        for (int dp = 0; dp < grid.layout().dp; ++dp) {
          const int pp = plan_.stages()[static_cast<std::size_t>(stage)].pp;
          for (const int rank : grid.StageRanks(pp, dp)) config.shards.emplace_back(rank, stage);
        }
      }
      config.devices = LockStepOf(config.shards.front().first);
      const Update handle = Spawn<Update>("update of " + plan_.graph().StageName(update.stages[0]),
                                          false, RunUpdate, std::move(config));
      updates_.push_back(handle);
      for (const int stage : update.stages) update_of_[stage] = handle;
    }
  }

  void SpawnStages(int stage) {
    const StagePlan& plan = plan_.stages()[static_cast<std::size_t>(stage)];
    const Grid& grid = ModuleOf(stage).grid;
    std::vector<std::vector<OutgoingLink>> out(static_cast<std::size_t>(grid.layout().dp));
    for (const int index : plan_.graph().stages()[static_cast<std::size_t>(stage)].out) {
      const StageLink& link = plan_.graph().links()[static_cast<std::size_t>(index)];
      const auto targets = TargetsOf(link);
      for (std::size_t dp = 0; dp < out.size(); ++dp) out[dp].push_back(targets[dp]);
    }
    for (int dp = 0; dp < grid.layout().dp; ++dp) {
      StageConfig config;
      config.stage = stage;
      config.name = plan_.StageName(stage, dp);
      config.ranks = grid.StageRanks(plan.pp, dp);
      config.devices = LockStepOf(config.ranks.front());
      config.limit = plan.limit;
      config.microbatches_per_unit = ModuleOf(stage).microbatches_per_unit;
      config.runs_backward = plan.runs_backward;
      config.reads_data = plan.reads_data;
      for (std::size_t l = 0; l < plan.in_source.size(); ++l) {
        config.in.push_back({plan.in_source[l], plan.in_carries_gradient[l]});
      }
      config.out = out[static_cast<std::size_t>(dp)];
      if (plan.trains) config.update = update_of_.at(stage);
      config.abort = s_.config.abort;
      stages_[stage].push_back(
          Spawn<Stage>("stage " + config.name, false, RunStage, std::move(config)));
    }
  }

  /// Place of the link among the incoming ones of the stage it leads to.
  int PlaceOf(const StageLink& link) const {
    const auto& in = plan_.graph().stages()[static_cast<std::size_t>(link.to)].in;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (&plan_.graph().links()[static_cast<std::size_t>(in[i])] == &link) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  /// Whom each replica of the link's source speaks to.
  std::vector<OutgoingLink> TargetsOf(const StageLink& link) {
    std::vector<OutgoingLink> targets;
    if (link.edge < 0) {
      for (const Stage& next : stages_.at(link.to)) targets.push_back({next, PlaceOf(link)});
      return targets;
    }
    const EdgePlan& edge = plan_.edges()[static_cast<std::size_t>(link.edge)];
    if (edge.placement == Placement::kDisjoint) return SpawnLeaders(link, edge);
    const Phase phase = SpawnPhase(link, edge);
    const int replicas = plan_.modules()[static_cast<std::size_t>(edge.from)].grid.layout().dp;
    for (int dp = 0; dp < replicas; ++dp) targets.push_back({phase, dp});
    return targets;
  }

  std::vector<OutgoingLink> SpawnLeaders(const StageLink& link, const EdgePlan& edge) {
    const std::int64_t samples = plan_.config().samples_per_microbatch();
    const Grid& from = plan_.modules()[static_cast<std::size_t>(edge.from)].grid;
    const Grid& to = plan_.modules()[static_cast<std::size_t>(edge.to)].grid;
    const Assignment source = EvenAssignment(samples, from.layout().dp);
    const Assignment destination = EvenAssignment(samples, to.layout().dp);
    const auto source_name = [&](int dp) { return edge.name + "/source." + std::to_string(dp); };
    const auto destination_name = [&](int dp) {
      return edge.name + "/destination." + std::to_string(dp);
    };

    std::map<int, DestinationLeader> leaders;
    for (int dp = 0; dp < to.layout().dp; ++dp) {
      const auto& stage = stages_.at(link.to)[static_cast<std::size_t>(dp)];
      DestinationLeaderConfig config{
          edge.name,      dp, PlaceOf(link), source,
          destination,    {}, stage,         s_.transport->Open(destination_name(dp)),
          s_.config.abort};
      for (int peer = 0; peer < from.layout().dp; ++peer) {
        config.peer_endpoints[peer] = source_name(peer);
      }
      leaders[dp] = Spawn<DestinationLeader>("leader " + destination_name(dp), false,
                                             RunDestinationLeader, std::move(config));
    }
    std::vector<OutgoingLink> targets;
    const int credits = plan_.graph().edges()[static_cast<std::size_t>(link.edge)].credits;
    for (int dp = 0; dp < from.layout().dp; ++dp) {
      SourceLeaderConfig config{
          edge.name,      dp,      credits, source,
          destination,    leaders, {},      s_.transport->Open(source_name(dp)),
          s_.config.abort};
      for (const auto& [peer, unused] : leaders) {
        config.peer_endpoints[peer] = destination_name(peer);
      }
      targets.push_back({Spawn<SourceLeader>("leader " + source_name(dp), false, RunSourceLeader,
                                             std::move(config)),
                         0});
    }
    return targets;
  }

  Phase SpawnPhase(const StageLink& link, const EdgePlan& edge) {
    PhaseConfig config;
    config.edge = edge.name;
    config.stage = link.from;
    config.group = link.edge;
    config.ranks = GroupRanks(edge);
    config.encoder = plan_.modules()[static_cast<std::size_t>(edge.from)].grid;
    config.language = plan_.modules()[static_cast<std::size_t>(edge.to)].grid;
    config.samples_per_microbatch = plan_.config().samples_per_microbatch();
    config.window = plan_.config().schedule.window;
    for (const Stage& stage : stages_.at(link.to)) config.stages.push_back(stage);
    config.link = PlaceOf(link);
    config.devices = LockStepOf(config.ranks.front());
    config.abort = s_.config.abort;
    phases_.push_back(Spawn<Phase>("phase " + edge.name, false, RunPhase, std::move(config)));
    return phases_.back();
  }

  void SpawnFeeds() {
    for (std::size_t m = 0; m < plan_.modules().size(); ++m) {
      const ModulePlan& module = plan_.modules()[m];
      for (int dp = 0; dp < module.grid.layout().dp; ++dp) {
        FeedConfig config;
        for (const auto& [stage, replicas] : stages_) {
          const StagePlan& plan = plan_.stages()[static_cast<std::size_t>(stage)];
          if (plan.module != static_cast<int>(m) || !plan.reads_data) continue;
          config.stages.push_back(replicas[static_cast<std::size_t>(dp)]);
        }
        if (config.stages.empty()) continue;
        config.module = module.config->name;
        config.dp = dp;
        config.microbatches_per_unit = module.microbatches_per_unit;
        config.source = s_.config.source;
        config.abort = s_.config.abort;
        feeds_.push_back(Spawn<Feed>("feed " + config.module + " dp" + std::to_string(dp), true,
                                     RunFeed, std::move(config)));
      }
    }
  }

  void SpawnTracer() {
    if (s_.config.trace_path.empty()) return;
    TracerConfig config;
    config.path = s_.config.trace_path;
    for (std::size_t i = 0; i < plan_.graph().stages().size(); ++i) {
      config.stage_names.push_back(plan_.graph().StageName(static_cast<int>(i)));
    }
    for (const auto& [rank, ring] : s_.config.rings) config.rings.push_back(ring);
    s_.tracer = Spawn<Tracer>("tracer", false, RunTracer, std::move(config));
  }

  void SpawnDirector() {
    DirectorConfig config;
    for (const auto& [stage, replicas] : stages_) {
      config.stages.insert(config.stages.end(), replicas.begin(), replicas.end());
    }
    config.feeds = feeds_;
    config.phases = phases_;
    config.updates = updates_;
    std::map<int, ToSet<Inspect>> sets;
    for (const auto& [rank, set] : plan_.lock_steps()) {
      for (const auto& [stage, shard] : plan_.ShardsOn(rank)) {
        sets[set].parts.emplace_back(rank, Inspect{stage, TensorKind::kParameter});
      }
    }
    for (auto& [set, inspect] : sets) config.shards.emplace_back(lock_steps_.at(set), inspect);
    config.rounds = s_.config.rounds;
    config.rounds_ahead = s_.config.rounds_ahead;
    config.inspect = s_.config.inspect;
    config.optimizer = plan_.config().optimizer;
    config.steps = plan_.config().run.steps;
    config.source = s_.config.source;
    config.observer = s_.config.observer;
    config.abort = s_.config.abort;
    s_.director = Spawn<Director>("director", true, RunDirector, std::move(config));
  }

  Self self_;
  NodeState& s_;
  const JobPlan& plan_;
  std::map<int, LockStep> lock_steps_;  ///< by set
  std::vector<Update> updates_;
  std::map<int, Update> update_of_;           ///< by stage
  std::map<int, std::vector<Stage>> stages_;  ///< by stage, then replica
  std::vector<Phase> phases_;
  std::vector<Feed> feeds_;
};

}  // namespace

void SpawnJob(Self self) { Spawner(self).SpawnAll(); }

}  // namespace troupe
