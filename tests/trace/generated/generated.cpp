#include "tests/trace/generated/generated.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "layout/stage_graph.hpp"
#include "schedule/stage_rule.hpp"
#include "tests/trace/generated/world.hpp"

namespace troupe::generated {
namespace {

std::size_t Index(int i) { return static_cast<std::size_t>(i); }

StageGraph GraphOf(const Spec& spec) {
  std::vector<ModuleNode> modules;
  for (const Module& module : spec.modules) modules.push_back({module.name, module.pp});
  std::vector<ModuleEdge> edges;
  for (const Edge& edge : spec.edges) edges.push_back({edge.from, edge.to, edge.credits});
  return StageGraph(modules, edges);
}

/// A command of a device, and its answer.
struct Command {
  WorkKind kind = WorkKind::kForward;
  std::string answer;
};
const std::map<std::string, Command>& Commands() {
  static const std::map<std::string, Command> commands = {
      {"RunForward", {WorkKind::kForward, "ForwardDone"}},
      {"RunBackward", {WorkKind::kBackward, "BackwardDone"}},
      {"ReduceGradients", {WorkKind::kReduce, "GradientsReduced"}},
      {"UpdateParameters", {WorkKind::kUpdate, "ParametersUpdated"}},
      {"SaveShard", {WorkKind::kCheckpoint, "ShardStored"}}};
  return commands;
}

/// One replica of a stage, as its actor sees it.
struct Replica {
  int stage = 0;
  int dp = 0;
  int actor = -1;
  int lock_step = -1;
  std::vector<int> devices;
  StageCounters counters;
  std::vector<std::int64_t> arrived;   ///< by incoming link
  std::vector<std::int64_t> answered;  ///< by outgoing link
  std::int64_t retired = 0;
  int missing = 0;  ///< devices that have not answered the command
};

class Job {
 public:
  explicit Job(const Spec& spec)
      : spec_(spec), graph_(GraphOf(spec)), world_(spec.near_ns, spec.far_ns) {
    rounds_ = spec.steps + (spec.evaluates_first ? 1 : 0);
    CountRanks();
    AddActors();
  }

  RunTrace Run() {
    world_.Run(world_.Actor(DirectorActor()), {"RunJob"});
    RunTrace trace = world_.Take();
    trace.run = "generated";
    for (int process = 0; process < spec_.processes; ++process) {
      trace.processes.push_back(
          {"n" + std::to_string(process), "host", 100 + process, trace.messages.size(), 0, 0, 0});
    }
    for (int stage = 0; Index(stage) < graph_.stages().size(); ++stage) {
      trace.stages.push_back(graph_.IdOf(stage));
    }
    for (int link = 0; Index(link) < graph_.links().size(); ++link) {
      const StageLink& l = graph_.links()[Index(link)];
      trace.links.push_back({LinkName(link), l.from, l.to, l.edge >= 0});
    }
    return trace;
  }

 private:
  bool Trains(std::int64_t round) const { return !(spec_.evaluates_first && round == 0); }
  /// 0: an evaluation.
  std::int64_t StepOf(std::int64_t round) const {
    return Trains(round) ? spec_.first_step + round - (spec_.evaluates_first ? 1 : 0) : 0;
  }
  Replica& At(int stage, int dp) { return replicas_[Index(stage * spec_.dp + dp)]; }
  ActorId LeaderOf(int link, EdgeEnd end, int dp) const {
    return {
        .kind = ActorKind::kLeader, .end = end, .replica = dp, .link = link, .of = LinkName(link)};
  }
  ActorId UpdateOf(int stage) const {
    return {.kind = ActorKind::kUpdate, .stage = stage, .of = graph_.StageName(stage)};
  }
  ActorId FeedOf(const Replica& replica) const {
    return {.kind = ActorKind::kFeed,
            .stage = replica.stage,
            .replica = replica.dp,
            .of = ModuleOf(replica.stage).name};
  }
  std::string LinkName(int link) const {
    const StageLink& l = graph_.links()[Index(link)];
    const auto module = [&](int stage) {
      return spec_.modules[Index(graph_.stages()[Index(stage)].module)].name;
    };
    if (l.edge >= 0) return module(l.from) + ">" + module(l.to);
    return graph_.StageName(l.from) + ">s" + std::to_string(graph_.stages()[Index(l.to)].pp);
  }
  const Module& ModuleOf(int stage) const {
    return spec_.modules[Index(graph_.stages()[Index(stage)].module)];
  }

  void CountRanks() {
    for (int stage = 0; Index(stage) < graph_.stages().size(); ++stage) {
      for (int dp = 0; dp < spec_.dp; ++dp) {
        Replica replica;
        replica.stage = stage;
        replica.dp = dp;
        for (int tp = 0; tp < ModuleOf(stage).tp; ++tp) replica.devices.push_back(ranks_++);
        replica.arrived.resize(graph_.links().size());
        replica.answered.resize(graph_.links().size());
        replicas_.push_back(replica);
      }
    }
  }
  int ProcessOf(int rank) const { return rank * spec_.processes / ranks_; }

  void AddActors();
  void AddStage(Replica& replica);
  void AddLeaders(int link, int dp);
  void AddUpdate(int stage);
  void OnDirector(const Letter& letter);
  void BeginRound();
  void OnStage(Replica& replica, const Letter& letter);
  void OnForwardDone(Replica& replica, const Letter& letter);
  void OnBackwardDone(Replica& replica, const Letter& letter);
  void AnswerUpstream(Replica& replica, const Letter& letter);
  void Retire(Replica& replica, const Letter& letter);
  void Pump(Replica& replica, std::int64_t round);
  void OnLockStep(Replica& replica, const Letter& letter);
  void OnDevice(const Replica& replica, int rank, const Letter& letter);

  /// An actor that only decides.
  int Add(const ActorId& id, int process, const World::Handler& handler) {
    const std::string name = ToString(id);
    return world_.AddActor(id, process, spec_.handling_ns, [=, this](const Letter& letter) {
      for (const SlowHandler& slow : spec_.slow_handlers) {
        if (slow.actor == name && slow.type == letter.type && slow.unit == letter.unit) {
          world_.Delay(slow.extra_us * 1000);
        }
      }
      handler(letter);
    });
  }

  /// `letter` with another type, to `to`.
  void Pass(int to, const std::string& type, const Letter& letter, int link = -1) {
    Letter next{type, letter.round, letter.unit, link};
    if (link >= 0) next.bytes = 1000 * (link + 1) + letter.unit;
    if (type == "RoundBegin") next.step = letter.step;
    if (type == "Slice") next.credits = static_cast<int>(3 - letter.unit % 4);
    if (!spec_.lost_type.empty() && !lost_ && type == spec_.lost_type &&
        letter.unit == spec_.lost_unit) {
      lost_ = true;
      world_.Lose(to, next);
    } else {
      world_.Send(to, next);
    }
  }

  Spec spec_;
  StageGraph graph_;
  World world_;
  std::vector<Replica> replicas_;  ///< by stage, then replica
  int ranks_ = 0;
  std::int64_t rounds_ = 0;
  std::int64_t round_ = -1;
  int reports_ = 0;
  int saving_ = 0;           ///< sets that have not written their shards
  std::map<int, int> told_;  ///< by stage: replicas that notified its update
  bool lost_ = false;
};

void Job::AddActors() {
  Add(DirectorActor(), 0, [this](const Letter& l) { OnDirector(l); });
  for (int link = 0; Index(link) < graph_.links().size(); ++link) {
    if (graph_.links()[Index(link)].edge < 0) continue;
    for (int dp = 0; dp < spec_.dp; ++dp) AddLeaders(link, dp);
  }
  for (Replica& replica : replicas_) AddStage(replica);
  for (int stage = 0; Index(stage) < graph_.stages().size(); ++stage) AddUpdate(stage);
}

void Job::AddStage(Replica& replica) {
  const int process = ProcessOf(replica.devices.front());
  Replica* r = &replica;
  const ActorId id{.kind = ActorKind::kStage,
                   .stage = r->stage,
                   .replica = r->dp,
                   .of = graph_.StageName(r->stage)};
  replica.actor = Add(id, process, [this, r](const Letter& l) { OnStage(*r, l); });
  replica.lock_step = Add(LockStepActor(r->stage * spec_.dp + r->dp), process,
                          [this, r](const Letter& l) { OnLockStep(*r, l); });
  for (const int rank : replica.devices) {
    Add(DeviceActor(rank), ProcessOf(rank),
        [this, r, rank](const Letter& l) { OnDevice(*r, rank, l); });
  }
  if (!graph_.IsSource(r->stage)) return;
  Add(FeedOf(replica), process, [this, r](const Letter& l) {
    if (l.type != "RoundBegin") return;
    for (int i = 0; i < spec_.microbatches; ++i) {
      Letter input = l;
      input.unit = l.round * spec_.microbatches + i;
      Pass(r->actor, "Input", input);
    }
  });
}

void Job::AddLeaders(int link, int dp) {
  const StageLink l = graph_.links()[Index(link)];
  const ActorId source = LeaderOf(link, EdgeEnd::kSource, dp);
  const ActorId destination = LeaderOf(link, EdgeEnd::kDestination, dp);
  const auto process = [&](int stage) { return ProcessOf(At(stage, dp).devices.front()); };
  Add(source, process(l.from), [=, this](const Letter& letter) {
    if (letter.type == "Activation") Pass(world_.Actor(destination), "Slice", letter, link);
    if (letter.type == "GradientSlice") Pass(At(l.from, dp).actor, "Gradient", letter, link);
  });
  Add(destination, process(l.to), [=, this](const Letter& letter) {
    if (letter.type == "Slice") Pass(At(l.to, dp).actor, "Activation", letter, link);
    if (letter.type == "Gradient") Pass(world_.Actor(source), "GradientSlice", letter, link);
  });
}

void Job::AddUpdate(int stage) {
  Add(UpdateOf(stage), ProcessOf(At(stage, 0).devices.front()),
      [this, stage](const Letter& letter) {
        Letter about = letter;
        about.unit = letter.round;
        const auto all = [&](const std::string& type) {
          told_[stage] = 0;
          for (int dp = 0; dp < spec_.dp; ++dp) {
            Pass(At(stage, dp).lock_step, type, about);
          }
        };
        if (letter.type == "RoundBegin" || ++told_[stage] < spec_.dp) return;
        if (letter.type == "BackwardsDone") all("ReduceGradients");
        if (letter.type == "GradientsReduced") all("UpdateParameters");
        if (letter.type != "ParametersUpdated") return;
        told_[stage] = 0;
        for (int dp = 0; dp < spec_.dp; ++dp) {
          Pass(At(stage, dp).actor, "Updated", about);
        }
      });
}

void Job::OnDirector(const Letter& letter) {
  if (letter.type == "ShardStored") {
    if (--saving_ == 0) BeginRound();
    return;
  }
  if (letter.type == "StageReport" && ++reports_ < static_cast<int>(replicas_.size())) return;
  reports_ = 0;
  const std::int64_t done = round_ < 0 ? 0 : StepOf(round_);
  ++round_;
  if (spec_.checkpoint_every == 0 || done == 0 || done % spec_.checkpoint_every != 0) {
    return BeginRound();
  }
  saving_ = static_cast<int>(replicas_.size());
  for (const Replica& replica : replicas_) {
    Pass(replica.lock_step, "SaveShard", {"", round_});
  }
}

void Job::BeginRound() {
  if (round_ >= rounds_) return;
  Letter begin{"RoundBegin", round_};
  begin.step = StepOf(round_);
  for (const Replica& replica : replicas_) Pass(replica.actor, "RoundBegin", begin);
  for (const Replica& replica : replicas_) {
    if (!graph_.IsSource(replica.stage)) continue;
    Pass(world_.Actor(FeedOf(replica)), "RoundBegin", begin);
  }
}

void Job::OnStage(Replica& replica, const Letter& letter) {
  const StageNode& node = graph_.stages()[Index(replica.stage)];
  StageCounters& c = replica.counters;
  const auto least = [](const std::vector<int>& links, const std::vector<std::int64_t>& counts) {
    std::int64_t smallest = counts[Index(links.front())];
    for (const int link : links) smallest = std::min(smallest, counts[Index(link)]);
    return smallest;
  };
  if (letter.type == "RoundBegin") {
    c.round_begin = c.horizon;
    c.horizon += spec_.microbatches;
  } else if (letter.type == "Input") {
    ++c.activations;
  } else if (letter.type == "Activation") {
    ++replica.arrived[Index(letter.link)];
    c.activations = least(node.in, replica.arrived);
  } else if (letter.type == "Gradient") {
    ++replica.answered[Index(letter.link)];
    c.gradients = least(node.out, replica.answered);
    if (!Trains(letter.round) && c.gradients > c.backwards) Retire(replica, letter);
  } else if (letter.type == "ForwardDone") {
    c.busy = false;
    OnForwardDone(replica, letter);
  } else if (letter.type == "BackwardDone") {
    c.busy = false;
    OnBackwardDone(replica, letter);
  } else if (letter.type == "Updated") {
    Pass(world_.Actor(DirectorActor()), "StageReport", letter);
    return;
  }
  Pump(replica, letter.round);
}

void Job::OnForwardDone(Replica& replica, const Letter& letter) {
  const StageNode& node = graph_.stages()[Index(replica.stage)];
  for (const int link : node.out) {
    const StageLink& l = graph_.links()[Index(link)];
    const ActorId leader = LeaderOf(link, EdgeEnd::kSource, replica.dp);
    Pass(l.edge < 0 ? At(l.to, replica.dp).actor : world_.Actor(leader), "Activation", letter,
         link);
  }
  if (!node.out.empty()) return;
  ++replica.counters.gradients;
  if (!Trains(letter.round)) Retire(replica, letter);
}

void Job::AnswerUpstream(Replica& replica, const Letter& letter) {
  for (const int link : graph_.stages()[Index(replica.stage)].in) {
    const StageLink& l = graph_.links()[Index(link)];
    const ActorId leader = LeaderOf(link, EdgeEnd::kDestination, replica.dp);
    Pass(l.edge < 0 ? At(l.from, replica.dp).actor : world_.Actor(leader), "Gradient", letter,
         link);
  }
}

void Job::OnBackwardDone(Replica& replica, const Letter& letter) {
  AnswerUpstream(replica, letter);
  if (++replica.retired % spec_.microbatches == 0) {
    Pass(world_.Actor(UpdateOf(replica.stage)), "BackwardsDone", letter);
  }
}

void Job::Retire(Replica& replica, const Letter& letter) {
  ++replica.counters.backwards;
  AnswerUpstream(replica, letter);
  if (++replica.retired % spec_.microbatches == 0) {
    Pass(world_.Actor(DirectorActor()), "StageReport", letter);
  }
}

void Job::Pump(Replica& replica, std::int64_t round) {
  StageCounters& c = replica.counters;
  const auto pass = NextPass(c, {.limit = graph_.InFlightLimit(replica.stage)});
  if (!pass) return;
  c.busy = true;
  const bool forward = pass->kind == PassKind::kForward;
  ++(forward ? c.forwards : c.backwards);
  Letter command{"", round, pass->unit};
  Pass(replica.lock_step, forward ? "RunForward" : "RunBackward", command);
}

void Job::OnLockStep(Replica& replica, const Letter& letter) {
  if (Commands().contains(letter.type)) {
    replica.missing = static_cast<int>(replica.devices.size());
    for (const int rank : replica.devices) {
      Pass(world_.Actor(DeviceActor(rank)), letter.type, letter);
    }
    return;
  }
  if (--replica.missing > 0) return;
  const bool pass = letter.type == "ForwardDone" || letter.type == "BackwardDone";
  const ActorId asker = letter.type == "ShardStored" ? DirectorActor() : UpdateOf(replica.stage);
  Pass(pass ? replica.actor : world_.Actor(asker), letter.type, letter);
}

void Job::OnDevice(const Replica& replica, int rank, const Letter& letter) {
  const auto& [kind, answer] = Commands().at(letter.type);
  const Module& module = ModuleOf(replica.stage);
  std::int64_t takes_us = 10;
  if (kind == WorkKind::kForward) takes_us = module.forward_us;
  if (kind == WorkKind::kBackward) takes_us = module.backward_us;
  if (kind == WorkKind::kCheckpoint) takes_us = spec_.checkpoint_us;
  const std::int64_t unit = kind == WorkKind::kCheckpoint ? StepOf(letter.round - 1) : letter.unit;
  for (const Slow& slow : spec_.slow) {
    if (slow.stage != graph_.StageName(replica.stage) || slow.dp != replica.dp ||
        slow.kind != kind || slow.unit != unit) {
      continue;
    }
    takes_us += slow.extra_us;
    if (slow.for_ever) world_.Hang();
  }
  PassRecord pass;
  pass.unit = unit;
  pass.round = letter.round;
  pass.stage = replica.stage;
  pass.dp = replica.dp;
  pass.rank = rank;
  pass.kind = kind;
  world_.Work(pass, takes_us * 1000);
  Pass(replica.lock_step, answer, letter);
}

}  // namespace

RunTrace Generate(const Spec& spec) { return Job(spec).Run(); }

void SwapPasses(RunTrace& trace, int rank, std::int64_t round, std::int64_t unit) {
  PassRecord* forward = nullptr;
  PassRecord* backward = nullptr;
  for (TraceWork& work : trace.work) {
    PassRecord& pass = work.pass;
    if (pass.rank != rank || pass.round != round || pass.unit != unit) continue;
    if (pass.kind == WorkKind::kForward) forward = &pass;
    if (pass.kind == WorkKind::kBackward) backward = &pass;
  }
  if (forward == nullptr || backward == nullptr) throw std::logic_error("no passes to swap");
  std::swap(forward->kind, backward->kind);
}

}  // namespace troupe::generated
