#include "plan/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "layout/sum_segments.hpp"
#include "plan/flat_layout.hpp"
#include "plan/job_plan.hpp"
#include "plan/mirrors.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// Returns the most microbatches of a stage that may still be in flight when the state that its
/// module's encoders offloaded comes back.
std::int64_t RestoreAhead(const JobPlan& plan, int module) {
  std::int64_t ahead = 0;
  for (const EdgePlan& edge : plan.edges()) {
    if (edge.to != module || plan.OffloadsOf(edge.from).empty()) continue;
    ahead = std::max(ahead, plan.RestoreAheadOf(edge));
  }
  return ahead;
}

/// Scales `activations` from one microbatch to the whole window that a colocated encoder keeps. A
/// replica may have fewer samples of a window than the most of a microbatch times its microbatches.
std::size_t WindowActivations(const Config& config, const ModuleConfig& module,
                              std::size_t activations) {
  const auto one = static_cast<std::size_t>(MostSamplesOfUnit(config, module, 1));
  const auto most =
      static_cast<std::size_t>(MostSamplesOfUnit(config, module, config.schedule.microbatches));
  return one == 0 ? 0 : activations / one * most;
}

/// Bytes of an element of parameters.
std::size_t StateElement(const Config& config) {
  return config.run.precision == Precision::kFloat64 ? 8 : 4;
}
/// Adds the rows of windows that wait on the first stage of the module that they feed, and their
/// gradients.
void AddWaitingRows(const JobPlan& plan, int module, StageNeed& need) {
  const Config& config = plan.config();
  for (const EdgePlan& edge : plan.edges()) {
    const ModuleConfig& from = *plan.ModuleOf(edge.from).config;
    if (edge.to != module || !plan.ModuleOf(edge.from).colocated_encoder) continue;
    const EdgeConfig& own = *ColocatedEdge(config, from);
    const std::size_t bytes = ArrivingBytes(plan, edge);
    const WaitingRows waiting = WaitingUnits(
        config, own,
        plan.ModuleOf(edge.from).units.In(config.schedule.microbatches).microbatches_each);
    need.rows += bytes * static_cast<std::size_t>(waiting.on_device);
    need.rows_away += bytes * static_cast<std::size_t>(waiting.away);
  }
}

}  // namespace

WaitingRows WaitingUnits(const Config& config, const EdgeConfig& edge, std::int64_t window) {
  const bool leaves =
      FindModule(config, edge.from).offload_results && config.cluster.backend == Backend::kCuda;
  const std::int64_t gradients = EdgeCarriesGradient(config, edge) ? window : 0;
  return {(leaves ? 1 : window) + gradients, leaves ? window : 0};
}

StageMemory EstimateMemory(const Config& config, const std::string& module, int pp) {
  const ModuleConfig& own = FindModule(config, module);
  const bool mixed = config.run.precision == Precision::kBFloat16;
  const std::size_t element = StateElement(config);
  // In an uneven cut the last rank's part is the largest.
  const ShardAddress last{.module = module, .pp = pp, .tp = own.layout.tp - 1};
  const FlatLayout flat(StageParameters(config, module, pp), last, own.layout,
                        ShardingsOf(config, own));
  const auto bytes = [element](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * element;
  };
  const std::int64_t num_rounded = mixed ? flat.num_trained() - flat.num_unrounded() : 0;
  const std::size_t masters = mixed ? bytes(flat.num_own() - flat.num_own_unrounded()) : 0;
  const std::size_t frozen = bytes(flat.num_frozen()) / (mixed ? 2 : 1);
  StageMemory memory;
  memory.parameters = bytes(flat.num_trained() - num_rounded) + masters + frozen;
  memory.rounded = bytes(num_rounded) / 2;
  memory.gradients = bytes(flat.num_trained());
  memory.optimizer = 2 * bytes(flat.num_own());
  // The masters are only for the update and leave with the moments.
  const std::size_t read = memory.parameters - masters + memory.rounded;
  if (own.offload == Offload::kParameters) memory.offloaded = read;
  if (own.offload == Offload::kState) memory.offloaded = memory.state();
  return memory;
}

/// Sets the bytes that shards of a stage copy and store: values and both moments of their own, or of the
/// shard whose mirror they make.
static void AddStored(const JobPlan& plan, const StagePlan& stage, const MirrorPlan& mirrors,
                      StageNeed& need) {
  const Config& config = plan.config();
  const bool beside = config.checkpoint.async && config.checkpoint.periodic();
  if (!beside && config.checkpoint.replicas == 0) return;
  const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
  const auto parameters = StageParameters(config, module.name, stage.pp);
  const std::size_t element = StateElement(config);
  const std::size_t frozen = config.run.precision == Precision::kBFloat16 ? element / 2 : element;
  for (int dp = 0; dp < module.layout.dp; ++dp) {
    for (const int rank : plan.RanksOf(stage.stage, dp)) {
      const FlatLayout flat(parameters, plan.ShardsOn(rank).at(stage.stage), module.layout,
                            ShardingsOf(config, module));
      std::size_t trained_bytes = 0;
      std::size_t frozen_bytes = 0;
      for (const FlatParameter& parameter : flat.parameters()) {
        const ParameterSpec& spec = parameter.spec;
        if (!spec.frozen && flat.ReportsOwn(parameter)) {
          trained_bytes += 3 * static_cast<std::size_t>(flat.OwnOf(parameter).size()) * element;
        } else if (spec.frozen && !spec.from_folder && flat.ReportsFrozen(parameter)) {
          frozen_bytes += static_cast<std::size_t>(parameter.size) * frozen;
        }
      }
      if (trained_bytes > 0) need.snapshots[rank] = trained_bytes;
      if (trained_bytes + frozen_bytes > 0) need.files[rank] = trained_bytes + frozen_bytes;
    }
  }
  for (const auto& [replica, first] : mirrors.made) {
    if (replica.second != stage.stage) continue;
    for (auto* bytes : {&need.snapshots, &need.files}) {
      const auto stored = bytes->find(first.rank);
      if (stored != bytes->end()) (*bytes)[replica.first] = stored->second;
    }
  }
}

/// Returns a unit of a stage: a microbatch, or a window of a colocated encoder. The first stage of a
/// module also keeps the rows that it has received of encoders elsewhere.
static UnitMemory UnitOf(const JobPlan& plan, const StagePlan& stage) {
  const ModulePlan& module = plan.ModuleOf(stage.module);
  UnitMemory unit = EstimateUnit(plan.config(), module.config->name, stage.pp);
  if (module.colocated_encoder) {
    for (std::size_t* const bytes : {&unit.kept, &unit.owed, &unit.away, &unit.largest_away,
                                     &unit.forward, &unit.last, &unit.backward}) {
      *bytes = WindowActivations(plan.config(), *module.config, *bytes);
    }
    return unit;
  }
  if (stage.pp > 0 || !stage.runs_backward) return unit;
  for (const EdgePlan& edge : plan.edges()) {
    const bool arrives = edge.to == stage.module && edge.placement != Placement::kColocated;
    if (arrives) unit.kept += ArrivingBytes(plan, edge);
  }
  return unit;
}

/// Returns the room for what arrives of a sum of `bytes` over `ranks`, on each of them.
static std::size_t SumRoom(const ProcessPlan& processes, const std::vector<int>& ranks,
                           std::size_t bytes) {
  std::set<ProcessId> parties;
  for (const int rank : ranks) parties.insert(processes.HomeOf(rank));
  if (parties.size() < 2) return 0;
  return parties.size() * std::min(bytes / parties.size(), kSumSegmentBytes * kSumSegmentsInFlight);
}

/// Returns the room for sums of rows over tp, and of gradients over cp and dp, of the ranks that are in
/// several processes. On GPUs it is NCCL's.
static std::size_t SumRoomOf(const JobPlan& plan, const ProcessPlan& processes,
                             const StagePlan& stage, const StageMemory& memory) {
  if (plan.config().cluster.backend == Backend::kCuda) return 0;
  const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
  std::vector<int> along_tp = plan.RanksOf(stage.stage, 0);
  std::vector<int> holders;
  for (int dp = 0; dp < module.layout.dp; ++dp) {
    const std::vector<int> replica = plan.RanksOf(stage.stage, dp);
    for (std::size_t i = 0; i < replica.size(); i += At(module.layout.tp)) {
      holders.push_back(replica[i]);
    }
  }
  along_tp.resize(At(module.layout.tp));
  return SumRoom(processes, along_tp, RowBytesOf(plan.config(), module)) +
         SumRoom(processes, holders, memory.gradients);
}

/// Adds what each rank holds of all its stages when it holds most.
static void AddPasses(const JobPlan& plan, std::vector<StageNeed>& needs) {
  std::map<int, std::map<int, UnitMemory>> units;  // by rank and stage
  std::map<int, StageNeed*> by_stage;
  for (StageNeed& need : needs) {
    by_stage[need.stage] = &need;
    for (const int rank : need.ranks) units[rank][need.stage] = need.unit;
  }
  std::map<std::vector<int>, std::map<int, HeldByPasses>> known;  // by stages
  for (const auto& [rank, of_rank] : units) {
    std::vector<int> stages;
    for (const auto& [stage, unit] : of_rank) stages.push_back(stage);
    const auto [found, is_new] = known.try_emplace(stages);
    if (is_new) found->second = HeldOnRank(plan, of_rank);
    for (const auto& [stage, held] : found->second) by_stage.at(stage)->passes[rank] = held;
  }
}

std::vector<StageNeed> StageNeeds(const JobPlan& plan, const ProcessPlan& processes) {
  const Config& config = plan.config();
  const MirrorPlan mirrors = PlanMirrors(plan, processes, config.checkpoint.replicas);
  std::vector<StageNeed> needs;
  for (const StagePlan& stage : plan.stages()) {
    const ModulePlan& module = plan.ModuleOf(stage.module);
    if (!module.config->model->computes()) continue;
    StageNeed need;
    need.stage = stage.stage;
    need.memory = EstimateMemory(config, module.config->name, stage.pp);
    if (OffloadOf(config, *module.config) == Offload::kNone) need.memory.offloaded = 0;
    need.unit = UnitOf(plan, stage);
    need.transit = TransitBytes(plan, stage) + SumRoomOf(plan, processes, stage, need.memory);
    const auto kept = static_cast<std::size_t>(stage.kept);
    need.away = need.unit.away * kept;
    if (!module.colocated_encoder) {
      const std::int64_t left = std::min(stage.kept, RestoreAhead(plan, stage.module));
      need.gone_at_restore = (need.unit.kept - need.unit.away) *
                             static_cast<std::size_t>(std::max<std::int64_t>(0, stage.kept - left));
    }
    AddStored(plan, stage, mirrors, need);
    if (stage.pp == 0) AddWaitingRows(plan, stage.module, need);
    need.ranks = plan.AllRanksOf(stage);
    std::ranges::sort(need.ranks);
    needs.push_back(std::move(need));
  }
  AddPasses(plan, needs);
  return needs;
}

template <class Amount>
static std::map<int, std::size_t> SumByRank(const std::vector<StageNeed>& stages, Amount amount) {
  std::map<int, std::size_t> sums;
  for (const StageNeed& stage : stages) {
    for (const int rank : stage.ranks) sums[rank] += std::invoke(amount, stage);
  }
  return sums;
}

static std::size_t Offloaded(const StageNeed& stage) { return stage.memory.offloaded; }
static std::size_t OnHost(const StageNeed& stage) {
  return stage.memory.offloaded + stage.away + stage.rows_away;
}

HeldByPasses StageNeed::most() const {
  HeldByPasses most;
  for (const auto& [rank, held] : passes) {
    if (held.total() > most.total()) most = held;
  }
  return most;
}

std::size_t StageNeed::on(int rank) const {
  const auto held = passes.find(rank);
  return memory.state() + rows + transit + (held == passes.end() ? 0 : held->second.total());
}

std::map<int, std::size_t> RankNeeds(const std::vector<StageNeed>& stages) {
  std::map<int, std::size_t> needs;
  for (const StageNeed& stage : stages) {
    for (const int rank : stage.ranks) needs[rank] += stage.on(rank);
  }
  return needs;
}

std::map<int, std::size_t> SnapshotNeeds(const std::vector<StageNeed>& stages) {
  std::map<int, std::size_t> needs;
  for (const StageNeed& stage : stages) {
    for (const auto& [rank, bytes] : stage.snapshots) needs[rank] += bytes;
  }
  return needs;
}

std::map<int, std::size_t> HostNeeds(const JobPlan& plan, const ProcessPlan& processes,
                                     const std::vector<StageNeed>& stages) {
  const auto beside = SumByRank(stages, OnHost);
  const auto parameters = SumByRank(stages, [](const auto& s) { return s.memory.parameters; });
  const auto savings = RankSavings(stages);
  std::map<int, std::size_t> needs = RankNeeds(stages);
  for (auto& [rank, bytes] : needs) {
    bytes = plan.config().cluster.backend == Backend::kCuda
                ? std::max(beside.at(rank), parameters.at(rank))
                : bytes - savings.at(rank) + beside.at(rank);
  }
  for (const auto& [rank, bytes] : SnapshotNeeds(stages)) needs[rank] += bytes;
  for (const auto& [process, need] : MirrorNeeds(plan, processes, stages)) {
    const std::vector<int>& ranks = processes.Of(process).ranks;
    if (!ranks.empty()) needs[ranks.front()] += need.held;
  }
  return needs;
}

std::map<ProcessId, MirrorNeed> MirrorNeeds(const JobPlan& plan, const ProcessPlan& processes,
                                            const std::vector<StageNeed>& stages) {
  const CheckpointConfig& checkpoint = plan.config().checkpoint;
  std::map<ProcessId, MirrorNeed> needs;
  if (checkpoint.replicas == 0 || processes.num_processes() == 1) return needs;
  constexpr std::size_t kKept = 2;  // the last state that is complete, and the one being made
  // A state is copied although the file of another is still being written to a disk.
  const std::size_t copies = checkpoint.async && checkpoint.periodic() ? 1 : 0;
  const MirrorPlan mirrors = PlanMirrors(plan, processes, checkpoint.replicas);
  std::map<ShardPlace, std::size_t> files;
  for (const StageNeed& stage : stages) {
    for (const auto& [rank, bytes] : stage.snapshots) {
      if (mirrors.made.contains({rank, stage.stage})) continue;
      needs[processes.HomeOf(rank)].held += copies * bytes;
    }
    for (const auto& [rank, bytes] : stage.files) {
      files[{rank, stage.stage}] = bytes;
      needs[processes.HomeOf(rank)].held += kKept * bytes;
    }
  }
  for (const MirrorPlan::Sent& mirror : mirrors.sent) {
    for (const ShardPlace& shard : mirror.shards) {
      needs[mirror.process].sent += files[shard];
      needs[mirror.holder].held += kKept * files[shard];
    }
  }
  return needs;
}

std::map<int, std::size_t> RankSavings(const std::vector<StageNeed>& stages) {
  const auto gone = SumByRank(stages, &StageNeed::gone_at_restore);
  auto away = SumByRank(stages, Offloaded);
  for (auto& [rank, bytes] : away) bytes = std::min(bytes, gone.at(rank));
  return away;
}

}  // namespace troupe
