#include "actors/spawn_actors.hpp"

#include <algorithm>
#include <utility>

#include <caf/send.hpp>

#include "actors/boundary_leader.hpp"
#include "actors/data_worker.hpp"
#include "actors/device_actor.hpp"
#include "actors/dispatcher_actor.hpp"
#include "actors/feed_actor.hpp"
#include "actors/lock_step_actor.hpp"
#include "actors/machine_link.hpp"
#include "actors/phase_actor.hpp"
#include "actors/stage_actor.hpp"
#include "actors/update_actor.hpp"
#include "files/output_file.hpp"
#include "layout/at.hpp"
#include "trace/recorder.hpp"
#include "transport/group.hpp"

namespace troupe {
namespace {

/// Spawns an actor that the node owns; a `threaded` one gets its own thread if the node allows it.
template <class Run, class ActorConfig>
Spawned Make(NodePointer self, const ActorId& id, bool threaded, Run run, ActorConfig config) {
  const NodeConfig& node = self->state.config;
  if constexpr (requires { config.abort; }) config.abort = node.abort;
  if constexpr (requires { config.tensors; }) config.tensors = node.tensors;
  const auto actor = caf::actor_cast<caf::actor>(
      threaded && node.threads ? self->template spawn<caf::detached>(run, std::move(config))
                               : self->spawn(run, std::move(config)));
  Adopt(self, actor, id, threaded);
  return {actor};
}

const JobPlan& PlanOf(NodePointer self) { return *self->state.config.plan; }

const StageLink& LinkOf(const JobPlan& plan, int link) { return plan.graph().links()[At(link)]; }
const EdgePlan& EdgeOf(const JobPlan& plan, const StageLink& link) {
  return plan.edges()[At(link.edge)];
}

/// Returns the GPU to which a boundary leader of a stage's replica fetches: that of the leader's
/// rank.
int LeaderGpu(NodePointer self, int stage, int dp, int part) {
  const NodeState& s = self->state;
  const int rank = PlanOf(self).LeaderRank(stage, dp, part);
  const bool local = s.config.processes->HomeOf(rank) == s.config.self;
  return local && s.config.gpu_of ? s.config.gpu_of(rank) : Buffer::kHost;
}

/// Returns, by shard of a stage's replica, the process of its stage actor if that fetches the
/// tensors of the shard; else this process.
std::vector<ProcessId> FetchersOf(NodePointer self, int stage, int dp) {
  const NodeState& s = self->state;
  std::vector<ProcessId> fetchers;
  for (const int rank : PlanOf(self).RanksOf(stage, dp)) {
    const ProcessId home = s.config.processes->HomeOf(rank);
    const bool fetched = fetchers.empty() || home == fetchers.front();
    fetchers.push_back(fetched ? home : s.config.self);
  }
  return fetchers;
}

/// The processes of the boundary leaders of a stage, by shard.
std::vector<ProcessId> LeaderHomes(NodePointer self, int stage) {
  const Layout& layout = PlanOf(self).GridOfStage(stage).layout();
  std::vector<ProcessId> homes;
  for (int dp = 0; dp < layout.dp; ++dp) {
    for (int part = 0; part < layout.cp; ++part) {
      const int rank = PlanOf(self).LeaderRank(stage, dp, part);
      homes.push_back(self->state.config.processes->HomeOf(rank));
    }
  }
  return homes;
}

/// The sample numbers of places that have `most` each.
Assignment Scaled(Assignment places, std::int64_t most) {
  for (auto& shard : places) {
    for (Interval& interval : shard) interval = {interval.begin * most, interval.end * most};
  }
  return places;
}

LeaderConfig LeaderConfigOf(NodePointer self, int link_index, EdgeEnd end, int dp, int part) {
  const JobPlan& plan = PlanOf(self);
  const StageLink& link = LinkOf(plan, link_index);
  const EdgePlan& edge = EdgeOf(plan, link);
  const std::int64_t samples = plan.samples_per_microbatch();
  const bool at_source = end == EdgeEnd::kSource;
  LeaderConfig config;
  config.edge = edge.name;
  config.shard = dp * plan.PartsAt(link_index, end) + part;
  config.source_cut = plan.CutAt(link_index, EdgeEnd::kSource);
  config.destination_cut = plan.CutAt(link_index, EdgeEnd::kDestination);
  config.packs = plan.config().data.packing;
  const std::int64_t most = plan.config().most_in_pack();
  config.source = Scaled(EvenAssignment(samples, plan.ModuleOf(edge.from).grid.layout().dp), most);
  config.destination =
      Scaled(EvenAssignment(samples, plan.ModuleOf(edge.to).grid.layout().dp), most);
  config.device = LeaderGpu(self, at_source ? link.from : link.to, dp, part);
  config.peer_homes = LeaderHomes(self, at_source ? link.to : link.from);
  return config;
}

/// The communicators of this process's ranks for the exchanges of colocated edges. Every process
/// walks all edges, in one order.
void JoinExchanges(NodePointer self, std::map<int, DeviceConfig>& devices) {
  const NodeState& s = self->state;
  const JobPlan& plan = PlanOf(self);
  for (std::size_t e = 0; e < plan.edges().size(); ++e) {
    const EdgePlan& edge = plan.edges()[e];
    if (edge.placement != Placement::kColocated) continue;
    const auto& ranks = plan.ModuleOf(edge.to).grid.ranks();
    std::vector<ProcessId> homes;
    std::vector<std::string> names;
    for (const int rank : ranks) {
      homes.push_back(s.config.processes->HomeOf(rank));
      names.push_back(ToString(DeviceActor(rank)));
    }
    if (std::find(homes.begin(), homes.end(), s.config.self) == homes.end()) continue;
    const GroupNames group{s.config.group_waits.get(), "exchange " + edge.name, std::move(names)};
    auto members = MakeGroup(group.group, homes, s.config.plane.get(), s.config.abort, group.waits,
                             group.members);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (homes[i] != s.config.self) continue;
      DeviceConfig& device = devices.at(ranks[i]);
      device.groups[static_cast<int>(e)] = std::move(members[i]);
      device.group_names[static_cast<int>(e)] = group;
    }
  }
}

/// The names that the file has of the job, and the room that they take.
RecorderOptions OptionsOf(const NodeConfig& config) {
  const JobPlan& plan = *config.plan;
  RecorderOptions options;
  options.processes.clear();
  for (const auto& process : config.processes->processes()) {
    options.processes.push_back(process.name);
  }
  options.capacity = config.trace_records;
  options.sources = plan.config().data.train_paths();
  options.cores = config.cores;
  const StageGraph& graph = plan.graph();
  for (std::size_t i = 0; i < graph.stages().size(); ++i) {
    options.stages.push_back(graph.IdOf(static_cast<int>(i)));
  }
  // A fixed part, and a name per actor.
  options.names_bytes =
      (std::size_t{1} << 16) + graph.stages().size() * 64 + plan.lock_steps().size() * 1024;
  for (const std::string& source : options.sources) options.names_bytes += source.size() + 16;
  const std::size_t name_size = config.processes->Of(config.self).name.size();
  options.names_bytes += static_cast<std::size_t>(plan.config().data.workers) * (name_size + 64);
  for (const StageLink& link : graph.links()) {
    const bool boundary = link.edge >= 0;
    options.links.push_back({boundary ? plan.edges()[At(link.edge)].name
                                      : graph.StageName(link.from) + ">" + graph.StageName(link.to),
                             link.from, link.to, boundary});
  }
  return options;
}

}  // namespace

void Adopt(NodePointer self, const caf::actor& child, const ActorId& id, bool threaded) {
  self->monitor(child);
  // A job can fail while it is being built: an actor spawned after that is stopped immediately.
  if (self->state.stopping) {
    caf::anon_send_exit(child, caf::exit_reason::user_shutdown);
    self->state.children.emplace(child.address(), id);
    return;
  }
  const std::string name = ToString(id);
  auto* const active = dynamic_cast<Active*>(caf::actor_cast<caf::abstract_actor*>(child));
  if (self->state.config.actors) {
    self->state.config.actors->Add({name, threaded, active->activity()});
  }
  if (const auto& trace = self->state.config.trace) {
    trace->NameActor(child.id(), id);
    active->activity()->trace = trace;
  }
  for (const PlantedFault& fault : self->state.config.faults) {
    if (fault.actor == name) active->Plant(fault);
  }
  self->state.children.emplace(child.address(), id);
  self->state.owned.push_back(child);
}

DevicesSpawned Spawn(NodePointer self, const SpawnDevices&) {
  const NodeState& s = self->state;
  const JobPlan& plan = PlanOf(self);
  std::map<int, DeviceConfig> configs;
  const MirrorPlan mirrors = MirrorsOf(s.config);
  for (const auto& [rank, unused] : plan.lock_steps()) {
    if (s.config.processes->HomeOf(rank) != s.config.self) continue;
    DeviceConfig& config = configs[rank];
    static_cast<DeviceTools&>(config) = static_cast<const DeviceTools&>(s.config);
    config.rank = rank;
    config.shards = plan.ShardsOn(rank);
    for (const auto& [stage, shard] : config.shards) {
      const auto made = mirrors.made.find({rank, stage});
      if (made != mirrors.made.end()) config.mirrored[stage] = made->second;
    }
    if (s.config.gpu_of) config.gpu = s.config.gpu_of(rank);
    config.open_elsewhere = OpenerOf(self);
  }
  JoinExchanges(self, configs);
  DevicesSpawned spawned;
  for (auto& [rank, config] : configs) {
    const Spawned device = Make(self, DeviceActor(rank), true, RunDevice, std::move(config));
    spawned.devices[rank] = caf::actor_cast<Device>(device.actor);
  }
  return spawned;
}

Spawned Spawn(NodePointer self, const SpawnLockStep& request) {
  const JobPlan& plan = PlanOf(self);
  const ActorId id = request.set >= 0 ? LockStepActor(request.set)
                                      : plan.PassLockStepActor(request.stage, request.dp);
  LockStepConfig config{request.devices, {}};
  for (const auto& [rank, device] : request.devices) {
    const DeviceOrder* order = plan.OrderOn(rank);
    if (order == nullptr) continue;
    config.orders[rank].order = *order;
    for (const auto& [stage, shard] : plan.ShardsOn(rank)) {
      if (std::ranges::count(*order, stage, &StagePass::stage) == 0) continue;
      config.orders[rank].stages[stage] = plan.StageActor(stage, shard.dp);
    }
  }
  for (const auto& [rank, device] : request.devices) {
    for (const auto& [stage, shard] : plan.ShardsOn(rank)) {
      const std::vector<int> replicas = plan.LockStepReplicas(stage, shard.dp);
      if (replicas.size() == 1 || plan.RanksOf(stage, shard.dp).front() != rank) continue;
      LockStepReplicas& all = config.replicas[{stage, rank}];
      for (const int dp : replicas) {
        all.first_ranks.push_back(plan.RanksOf(stage, dp).front());
        all.stages.push_back(plan.StageActor(stage, dp));
      }
    }
  }
  return Make(self, id, false, RunLockStep, std::move(config));
}

Spawned Spawn(NodePointer self, const SpawnUpdate& request) {
  const JobPlan& plan = PlanOf(self);
  const UpdatePlan& update = plan.updates()[At(request.update)];
  UpdateConfig config;
  const ActorId id = plan.UpdateActor(request.update);
  config.name = ToString(id);
  config.devices = request.devices;
  for (const int stage : update.stages) {
    const Grid& grid = plan.GridOfStage(stage);
    for (int dp = 0; dp < grid.layout().dp; ++dp) {
      config.replicas.push_back(plan.StageActor(stage, dp));
      for (const int rank : plan.RanksOf(stage, dp)) config.shards.emplace_back(rank, stage);
    }
  }
  return Make(self, id, false, RunUpdate, std::move(config));
}

Spawned Spawn(NodePointer self, const SpawnStage& request) {
  const NodeState& s = self->state;
  const JobPlan& plan = PlanOf(self);
  const StagePlan& stage = plan.stages()[At(request.stage)];
  StageConfig config;
  config.stage = request.stage;
  config.dp = request.dp;
  config.name = plan.StageName(request.stage, request.dp);
  config.ranks = plan.RanksOf(request.stage, request.dp);
  for (const int rank : config.ranks) {
    config.local.push_back(s.config.processes->HomeOf(rank) == s.config.self);
    if (s.config.gpu_of) config.on_device.push_back(s.config.gpu_of(rank));
  }
  config.devices = request.devices;
  config.rule = stage.rule;
  config.rule_without_backward = {.limit = stage.limit};
  config.units = plan.ModuleOf(stage.module).units;
  config.runs_backward = stage.runs_backward;
  config.reads_data = stage.reads_data;
  config.feed = plan.FeedActor(stage.module, request.dp);
  const StageNode& node = plan.graph().stages()[At(request.stage)];
  const auto fetchers = [&](const StageLink& link, int other_end) {
    return link.edge < 0 ? FetchersOf(self, other_end, request.dp) : std::vector<ProcessId>();
  };
  config.parts = plan.GridOfStage(request.stage).layout().cp;
  // Calls visit(part) for each actor at that end of the link. A single actor has no part.
  const auto for_each_part = [&](int link, EdgeEnd end, const auto& visit) {
    const int parts = plan.PartsAt(link, end);
    for (int part = 0; part < parts; ++part) {
      visit(parts == 1 ? std::nullopt : std::optional(part));
    }
  };
  for (std::size_t l = 0; l < node.in.size(); ++l) {
    const StageLink& link = LinkOf(plan, node.in[l]);
    for_each_part(node.in[l], EdgeEnd::kDestination, [&](std::optional<int> part) {
      config.in.push_back(
          {stage.in[l].source,
           plan.ActorAt(node.in[l], EdgeEnd::kDestination, request.dp, part.value_or(0)),
           stage.in[l].carries_gradient, fetchers(link, link.from), l, part,
           part ? plan.CutAt(node.in[l], EdgeEnd::kDestination) : RowCut()});
    });
  }
  for (std::size_t l = 0; l < node.out.size(); ++l) {
    const StageLink& link = LinkOf(plan, node.out[l]);
    for_each_part(node.out[l], EdgeEnd::kSource, [&](std::optional<int> part) {
      config.out.push_back(
          {request.out.at(config.out.size()),
           plan.ActorAt(node.out[l], EdgeEnd::kSource, request.dp, part.value_or(0)),
           fetchers(link, link.to), l, part});
    });
  }
  config.update = request.update;
  config.queued_passes = s.config.queued_passes;
  config.virtual_time = s.config.takes_ns != nullptr;
  return Make(self, plan.StageActor(request.stage, request.dp), false, RunStage, std::move(config));
}

Spawned Spawn(NodePointer self, const SpawnDestinationLeader& request) {
  const JobPlan& plan = PlanOf(self);
  DestinationLeaderConfig config;
  static_cast<LeaderConfig&>(config) =
      LeaderConfigOf(self, request.link, EdgeEnd::kDestination, request.dp, request.part);
  config.link = plan.InputOf(request.link) + request.part;
  config.stage = request.stage;
  config.stage_actor = plan.StageActor(LinkOf(plan, request.link).to, request.dp);
  for (std::size_t dp = 0; dp < config.source.size(); ++dp) {
    for (int part = 0; part < config.source_cut.parts; ++part) {
      config.source_leaders.push_back(
          plan.ActorAt(request.link, EdgeEnd::kSource, static_cast<int>(dp), part));
    }
  }
  return Make(self, plan.ActorAt(request.link, EdgeEnd::kDestination, request.dp, request.part),
              false, RunDestinationLeader, std::move(config));
}

Spawned Spawn(NodePointer self, const SpawnSourceLeader& request) {
  const JobPlan& plan = PlanOf(self);
  SourceLeaderConfig config;
  static_cast<LeaderConfig&>(config) =
      LeaderConfigOf(self, request.link, EdgeEnd::kSource, request.dp, request.part);
  const int edge = LinkOf(plan, request.link).edge;
  config.credits = plan.graph().edges()[At(edge)].credits;
  config.peers = request.peers;
  return Make(self, plan.ActorAt(request.link, EdgeEnd::kSource, request.dp, request.part), false,
              RunSourceLeader, std::move(config));
}

Spawned Spawn(NodePointer self, const SpawnPhase& request) {
  const JobPlan& plan = PlanOf(self);
  const StageLink& link = LinkOf(plan, request.link);
  const EdgePlan& edge = EdgeOf(plan, link);
  PhaseConfig config;
  config.stage = link.from;
  config.group = link.edge;
  config.encoder = plan.ModuleOf(edge.from).grid;
  config.language = plan.ModuleOf(edge.to).grid;
  config.encoder_cut = plan.CutAt(request.link, EdgeEnd::kSource);
  config.language_cut = plan.CutAt(request.link, EdgeEnd::kDestination);
  config.ranks = config.language.ranks();
  config.samples_per_microbatch = plan.samples_per_microbatch();
  config.most_in_pack = plan.config().most_in_pack();
  config.units = plan.ModuleOf(edge.from).units;
  config.stages = request.stages;
  config.offloads = plan.OffloadsOf(edge.from);
  config.restore_ahead = plan.RestoreAheadOf(edge);
  // A single stage commands the backward with the forward; of several the first waits for a gradient.
  const bool single = plan.ModuleOf(edge.to).config->num_stages() == 1;
  config.queued_backwards = single && self->state.config.queued_passes > 1 ? 1 : 0;
  config.rows_on_host = plan.ModuleOf(edge.from).config->offload_results;
  for (int dp = 0; dp < config.encoder.layout().dp; ++dp) {
    config.encoders.push_back(plan.StageActor(link.from, dp));
  }
  config.link = plan.InputOf(request.link);
  config.devices = request.devices;
  const ActorId id = plan.ActorAt(request.link, EdgeEnd::kDestination, 0);
  config.name = ToString(id);
  return Make(self, id, false, RunPhase, std::move(config));
}

/// Returns the dispatcher of this process, which it makes with its workers when it is first asked for.
/// It is invalid if there are no samples to prepare.
static Dispatcher DispatcherOf(NodePointer self) {
  NodeState& s = self->state;
  if (s.dispatcher || !s.config.source->prepares()) return s.dispatcher;
  const DataConfig& data = PlanOf(self).config().data;
  const std::string& process = s.config.processes->Of(s.config.self).name;
  const ActorId id{.kind = ActorKind::kDispatcher, .of = process};
  DispatcherConfig config;
  config.name = ToString(id);
  config.process = process;
  config.most_bytes = data.prefetch_mib << 20;
  for (int i = 0; i < data.workers; ++i) {
    const ActorId worker{.kind = ActorKind::kDataWorker, .set = i, .of = process};
    const Spawned made = Make(self, worker, true, RunDataWorker, DataWorkerConfig{s.config.source});
    config.workers.push_back(caf::actor_cast<SampleWorker>(made.actor));
  }
  s.dispatcher =
      caf::actor_cast<Dispatcher>(Make(self, id, false, RunDispatcher, std::move(config)).actor);
  if (s.config.await_machines) s.config.await_machines(Node(self));
  return s.dispatcher;
}

void AddMachine(NodePointer self, std::shared_ptr<FeedMachine> machine) {
  NodeState& s = self->state;
  if (s.stopping) return;
  const ActorId id{.kind = ActorKind::kMachineLink,
                   .of = machine->name() + " of " + s.config.processes->Of(s.config.self).name};
  const Spawned made =
      Make(self, id, true, RunMachineLink, MachineLinkConfig{s.config.source, machine});
  self->send(s.dispatcher, MachineJoined{made.actor, std::move(machine)});
}

Spawned Spawn(NodePointer self, const SpawnFeed& request) {
  const ModulePlan& module = PlanOf(self).ModuleOf(request.module);
  FeedConfig config;
  config.module = module.config->name;
  config.dp = request.dp;
  config.units = module.units;
  config.stages = request.stages;
  config.source = self->state.config.source;
  config.dispatcher = DispatcherOf(self);
  config.prefetch = static_cast<int>(PlanOf(self).config().data.prefetch);
  const ActorId id = PlanOf(self).FeedActor(request.module, request.dp);
  config.name = ToString(id);
  return Make(self, id, true, RunFeed, std::move(config));
}

std::string OpenTraceFile(NodePointer self, const OpenTrace& request) {
  const NodeState& s = self->state;
  if (!s.config.trace) return "";
  RecorderOptions options = OptionsOf(s.config);
  // Other processes are known once they have introduced themselves; this request of process 0 may
  // come before that.
  const caf::strong_actor_ptr& sender = self->current_sender();
  if (sender) s.config.trace->KnowProcess(sender->node(), 0);
  std::string error;
  if (!request.folder.empty()) {
    const std::string& name = options.processes[At(s.config.self)];
    options.path = request.folder + "/" + name + kTraceExtension;
    try {
      MakeFolders(request.folder);
      s.config.trace->Open(options);
      return "";
    } catch (const std::exception& e) {
      // Process 0 must have the file; another may not see the folder, and trains without a trace.
      if (s.config.self == 0) throw;
      error = "no trace of " + name + ": " + e.what();
    }
  }
  options.path.clear();
  s.config.trace->Open(options);
  return error;
}

}  // namespace troupe
