#include "plan/job_plan.hpp"

#include <algorithm>

#include "plan/row_cuts.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// Merges groups of ranks that have a common rank. Maps each rank to the number of its set; sets are
/// numbered by their lowest rank.
std::map<int, int> NumberSets(const std::vector<std::vector<int>>& groups) {
  int end = 0;
  for (const std::vector<int>& group : groups) end = std::max(end, std::ranges::max(group) + 1);
  constexpr int kNone = -1;
  std::vector<int> parent(At(end), kNone);
  const auto root_of = [&](int rank) {
    while (parent[At(rank)] != rank) rank = parent[At(rank)];
    return rank;
  };
  for (const std::vector<int>& group : groups) {
    for (const int rank : group) {
      if (parent[At(rank)] == kNone) parent[At(rank)] = rank;
      parent[At(root_of(rank))] = root_of(group.front());
    }
  }
  std::vector<int> number_of_root(parent.size(), kNone);
  int next = 0;
  std::map<int, int> numbers;
  for (int rank = 0; rank < end; ++rank) {
    if (parent[At(rank)] == kNone) continue;
    int& number = number_of_root[At(root_of(rank))];
    if (number == kNone) number = next++;
    numbers.emplace_hint(numbers.end(), rank, number);
  }
  return numbers;
}

}  // namespace

JobPlan::JobPlan(Config config) : config_(std::move(config)) {
  samples_per_microbatch_ = config_.samples_per_microbatch();
  AddModules();
  AddEdges();
  AddStages();
  AddUpdates();
  if (updates_.empty()) throw LayoutError("nothing trains: every module and projector is frozen");
  JoinLockSteps();
  AddSchedule();
}

void JobPlan::AddModules() {
  for (const ModuleConfig& module : config_.modules) {
    if (module.inline_in) continue;
    modules_.push_back({&module, GridOf(config_, module), UnitLength(config_, module), false});
  }
}

void JobPlan::AddEdges() {
  const auto index_of = [this](const std::string& name) {
    const auto name_of = [](const ModulePlan& module) { return module.config->name; };
    return static_cast<int>(std::ranges::find(modules_, name, name_of) - modules_.begin());
  };
  std::vector<ModuleNode> nodes;
  for (const ModulePlan& module : modules_) {
    nodes.push_back({module.config->name, module.config->num_stages()});
  }
  std::vector<ModuleEdge> links;
  for (const EdgeConfig& edge : config_.edges) {
    const Placement placement = PlacementOfEdge(config_, edge);
    if (placement == Placement::kInline) continue;
    EdgePlan plan = {.name = edge.from + ">" + edge.to,
                     .from = index_of(edge.from),
                     .to = index_of(edge.to),
                     .placement = placement,
                     .carries_gradient = EdgeCarriesGradient(config_, edge)};
    if (placement == Placement::kColocated) modules_[At(plan.from)].colocated_encoder = true;
    const int dp = ModuleOf(plan.to).grid.layout().dp;
    if (samples_per_microbatch_ < dp) {
      throw LayoutError("edge " + plan.name + ": a microbatch has " +
                        std::to_string(samples_per_microbatch_) +
                        " samples, too few for dp = " + std::to_string(dp) + " of " + edge.to);
    }
    links.push_back({plan.from, plan.to, edge.credits});
    edges_.push_back(std::move(plan));
  }
  graph_ = StageGraph(std::move(nodes), std::move(links));
}

void JobPlan::AddStages() {
  for (std::size_t i = 0; i < graph_.stages().size(); ++i) {
    const StageNode& node = graph_.stages()[i];
    const ModulePlan& module = ModuleOf(node.module);
    const std::string& name = module.config->name;
    StagePlan plan;
    plan.stage = static_cast<int>(i);
    plan.module = node.module;
    plan.pp = node.pp;
    plan.limit = module.colocated_encoder ? 1 : graph_.InFlightLimit(plan.stage);
    plan.trains = StageTrains(config_, name, node.pp);
    plan.runs_backward = RunsBackward(config_, name, node.pp);
    plan.reads_data = module.config->model->ReadsData(
        node.pp == 0, node.pp + 1 == module.config->num_stages(), graph_.IsSource(plan.stage));
    for (const int in : node.in) {
      const StageLink& link = graph_.links()[At(in)];
      if (link.edge < 0) {
        plan.in.push_back({name, RunsBackward(config_, name, node.pp - 1)});
      } else {
        const EdgePlan& edge = edges_[At(link.edge)];
        plan.in.push_back({ModuleOf(edge.from).config->name, edge.carries_gradient});
      }
    }
    stages_.push_back(std::move(plan));
  }
}

void JobPlan::AddUpdates() {
  for (const StagePlan& stage : stages_) {
    if (!stage.trains) continue;
    const ModuleConfig& module = *ModuleOf(stage.module).config;
    const bool tied = module.head_tied_across_stages() && !module.keeps_parameters();
    const int first = graph_.StageIndex(stage.module, 0);
    if (tied && stage.pp == module.num_stages() - 1) {
      for (UpdatePlan& update : updates_) {
        if (update.stages.front() == first) update.stages.push_back(stage.stage);
      }
    } else {
      updates_.push_back({{stage.stage}});
    }
  }
}

void JobPlan::JoinLockSteps() {
  std::vector<std::vector<int>> groups;
  for (const StagePlan& stage : stages_) {
    groups.push_back(AllRanksOf(stage));
  }
  for (const ModulePlan& module : modules_) {
    if (!module.config->head_tied_across_stages()) continue;
    auto ranks = module.grid.RanksAt(0);
    const auto last =
        module.grid.RanksAt((module.config->num_stages() - 1) % module.grid.layout().pp);
    ranks.insert(ranks.end(), last.begin(), last.end());
    groups.push_back(ranks);
  }
  for (const EdgePlan& edge : edges_) {
    if (edge.placement != Placement::kColocated) continue;
    groups.push_back(ModuleOf(edge.to).grid.ranks());
  }
  lock_step_ = NumberSets(groups);
}

bool JobPlan::HasRanksAlone(int stage, int dp) const {
  return std::ranges::all_of(RanksOf(stage, dp),
                             [this](int rank) { return ShardsOn(rank).size() == 1; });
}

std::vector<int> JobPlan::LockStepReplicas(int stage, int dp) const {
  const ModuleConfig& module = *ModuleOf(stages_[At(stage)].module).config;
  const int count = module.model->num_experts() > 0 ? module.layout.lock_step_replicas() : 1;
  std::vector<int> replicas;
  for (int i = 0; i < count; ++i) replicas.push_back(dp / count * count + i);
  return replicas;
}

std::map<int, ShardAddress> JobPlan::ShardsOn(int rank) const {
  std::map<int, ShardAddress> shards;
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    const Grid& grid = modules_[m].grid;
    if (!grid.Contains(rank)) continue;
    const Coordinates at = grid.CoordinatesOf(rank);
    for (int stage = at.pp; stage < modules_[m].config->num_stages(); stage += grid.layout().pp) {
      shards[graph_.StageIndex(static_cast<int>(m), stage)] = {
          modules_[m].config->name, stage, at.dp, at.tp, at.cp, rank};
    }
  }
  return shards;
}

const Grid& JobPlan::GridOfStage(int stage) const {
  return ModuleOf(stages_[At(stage)].module).grid;
}

std::vector<int> JobPlan::RanksOf(int stage, int dp) const {
  const Grid& grid = GridOfStage(stage);
  return grid.StageRanks(stages_[At(stage)].pp % grid.layout().pp, dp);
}

std::vector<int> JobPlan::AllRanksOf(const StagePlan& stage) const {
  const Grid& grid = ModuleOf(stage.module).grid;
  return grid.RanksAt(stage.pp % grid.layout().pp);
}

int JobPlan::LeaderRank(int stage, int dp, int part) const {
  const Grid& grid = GridOfStage(stage);
  return grid.Leader(stages_[At(stage)].pp % grid.layout().pp, dp, part);
}

std::vector<std::pair<int, int>> JobPlan::OffloadsOf(int module) const {
  std::vector<std::pair<int, int>> shards;
  if (OffloadOf(config_, *ModuleOf(module).config) == Offload::kNone) return shards;
  for (const StagePlan& stage : stages_) {
    if (stage.module != module) continue;
    for (const int rank : AllRanksOf(stage)) {
      shards.emplace_back(rank, stage.stage);
    }
  }
  return shards;
}

std::int64_t JobPlan::RestoreAheadOf(const EdgePlan& edge) const {
  const std::int64_t half = ModuleOf(edge.to).config->num_stages() / 2;
  return ModuleOf(edge.from).config->offload_ahead.value_or(half);
}

ActorId JobPlan::ActorAt(int link, EdgeEnd end, int dp, int part) const {
  const StageLink& l = graph_.links()[At(link)];
  if (l.edge < 0) return StageActor(end == EdgeEnd::kSource ? l.to : l.from, dp);
  const EdgePlan& edge = edges_[At(l.edge)];
  if (edge.placement == Placement::kColocated) {
    return {.kind = ActorKind::kPhase, .link = link, .of = edge.name};
  }
  const int shard = dp * PartsAt(link, end) + part;
  return {.kind = ActorKind::kLeader, .end = end, .replica = shard, .link = link, .of = edge.name};
}

int JobPlan::PartsAt(int link, EdgeEnd end) const {
  const StageLink& l = graph_.links()[At(link)];
  if (l.edge < 0 || edges_[At(l.edge)].placement != Placement::kDisjoint) return 1;
  return GridOfStage(end == EdgeEnd::kSource ? l.from : l.to).layout().cp;
}

RowCut JobPlan::CutAt(int link, EdgeEnd end) const {
  const EdgePlan& edge = edges_[At(graph_.links()[At(link)].edge)];
  const EdgeConfig& config =
      *config_.FindEdge(ModuleOf(edge.from).config->name, ModuleOf(edge.to).config->name);
  return end == EdgeEnd::kSource ? SourceCut(config_, config) : DestinationCut(config_, config);
}

int JobPlan::InputOf(int link) const {
  int number = 0;
  for (const int in : graph_.stages()[At(graph_.links()[At(link)].to)].in) {
    if (in == link) break;
    number += PartsAt(in, EdgeEnd::kDestination);
  }
  return number;
}

std::string JobPlan::StageName(int stage, int dp) const {
  return graph_.StageName(stage) + " dp" + std::to_string(dp);
}

int JobPlan::UpdateOf(int stage) const {
  const auto found = std::ranges::find_if(updates_, [stage](const UpdatePlan& update) {
    return std::ranges::count(update.stages, stage) > 0;
  });
  return found == updates_.end() ? -1 : static_cast<int>(found - updates_.begin());
}

ActorId JobPlan::StageActor(int stage, int dp) const {
  return {.kind = ActorKind::kStage, .stage = stage, .replica = dp, .of = graph_.StageName(stage)};
}

ActorId JobPlan::UpdateActor(int update) const {
  const int first = updates_[At(update)].stages.front();
  return {.kind = ActorKind::kUpdate, .stage = first, .of = graph_.StageName(first)};
}

ActorId JobPlan::FeedActor(int module, int dp) const {
  return {.kind = ActorKind::kFeed,
          .stage = graph_.StageIndex(module, 0),
          .replica = dp,
          .of = ModuleOf(module).config->name};
}

ActorId JobPlan::PassLockStepActor(int stage, int dp) const {
  ActorId id = StageActor(stage, dp);
  id.kind = ActorKind::kLockStep;
  return id;
}

}  // namespace troupe
