#include "plan/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "plan/flat_layout.hpp"
#include "plan/job_plan.hpp"
#include "plan/layer_split.hpp"
#include "plan/mirrors.hpp"
#include "plan/row_cuts.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// Returns `work` of a whole module as that of one part of it.
RankWork WorkOf(const Config& config, const ModuleConfig& of, RankWork work) {
  work.samples *= MostItemsOfSample(config, of);
  work.recompute = of.recompute;
  if (of.inline_in) work.cp = 1;
  return work;
}

/// What a microbatch keeps for its backward.
struct Kept {
  std::int64_t all = 0;
  std::int64_t away = 0;          ///< the part of it that leaves the device
  std::int64_t largest_away = 0;  ///< of a layer
};

/// Adds what leaves of the layers of a part.
void AddAway(const Config& config, const StagePart& part, const RankWork& whole, Kept& kept) {
  const ModuleConfig& module = *part.module;
  if (module.offload_activations.none()) return;
  const RankWork work = WorkOf(config, module, whole);
  const Interval layers = PlaceOf(module, part.pp).layers;
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    if (!ActivationsLeave(module, part.pp, layer)) continue;
    const StagePlace alone{.layers = {layer, layer + 1}};
    const std::int64_t away = module.model->KeptElements(alone, work);
    kept.away += away;
    kept.largest_away = std::max(kept.largest_away, away);
  }
}

/// Counts nothing before the first part that trains, since no backward gets there.
Kept ActivationElements(const Config& config, const ModuleConfig& module, int pp) {
  if (!module.model->computes()) return {};
  const auto replicas = static_cast<std::int64_t>(module.layout.dp);
  const RankWork work = {.samples = CeilDivide(config.samples_per_microbatch(), replicas),
                         .tp = module.layout.tp,
                         .etp = module.layout.etp,
                         .cp = module.layout.cp,
                         .cuts_rows = module.layout.cuts_rows()};
  Kept kept;
  for (const StagePart& part : StageParts(config, module.name, pp)) {
    if (!part.runs_backward()) continue;
    kept.all += KeptElements(config, part, work);
    if (part.edge == nullptr) AddAway(config, part, work, kept);
  }
  return kept;
}

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

/// Bytes of an element of parameters, and of rows.
std::size_t StateElement(const Config& config) {
  return config.run.precision == Precision::kFloat64 ? 8 : 4;
}
std::size_t RowElement(const Config& config) {
  return config.run.precision == Precision::kBFloat16 ? 2 : StateElement(config);
}

/// The most microbatches whose deferred work for weights holds activations.
std::size_t UnitsOwed(const StagePlan& stage) {
  if (!stage.rule.splits_backward) return 0;
  const std::int64_t owed = stage.rule.kind == RuleKind::kZbH1
                                ? stage.rule.weight_limit - stage.rule.limit + 1
                                : stage.kept;
  return static_cast<std::size_t>(owed);
}

/// Adds the rows of windows that wait on the first stage of the module that they feed, and their
/// gradients.
void AddWaitingRows(const JobPlan& plan, int module, StageNeed& need) {
  const Config& config = plan.config();
  for (const EdgePlan& edge : plan.edges()) {
    const ModuleConfig& from = *plan.ModuleOf(edge.from).config;
    if (edge.to != module || !plan.ModuleOf(edge.from).colocated_encoder) continue;
    const EdgeConfig& own = *ColocatedEdge(config, from);
    const bool projected = own.through && own.through->on == ProjectorEnd::kFrom;
    const std::int64_t width =
        projected ? ProjectorShapeOf(config, own).out : from.model->row_width();
    const RowCut cut = DestinationCut(config, own);
    const std::int64_t samples =
        CeilDivide(config.samples_per_microbatch(), plan.ModuleOf(module).config->layout.dp);
    const std::int64_t items = samples * MostItemsOfSample(config, from);
    const std::int64_t rows =
        CeilDivide(items * from.model->rows_per_item(), std::int64_t{cut.parts} * cut.slices);
    const auto bytes = static_cast<std::size_t>(rows * width) * RowElement(config);
    const std::int64_t window =
        plan.ModuleOf(edge.from).units.In(config.schedule.microbatches).microbatches_each;
    const std::size_t all = bytes * static_cast<std::size_t>(window);
    const bool leaves = from.offload_results && config.cluster.backend == Backend::kCuda;
    need.rows += leaves ? bytes : all;
    if (EdgeCarriesGradient(config, own)) need.rows += all;
    need.rows_away += leaves ? all : 0;
  }
}

}  // namespace

std::int64_t KeptElements(const Config& config, const StagePart& part, const RankWork& work,
                          const std::optional<StagePlace>& layers) {
  if (part.newline) return 0;
  if (part.is_projector()) {
    const ModuleConfig& source = FindModule(config, part.edge->from);
    const ModelConfig& from = *source.model;
    const std::int64_t of_sample = MostItemsOfSample(config, source) * from.rows_per_item();
    std::int64_t rows = CeilDivide(of_sample, work.cp);
    if (part.edge->through->on == ProjectorEnd::kTo || source.inline_in) {
      // Those of the tokens of a rank, which may all be of items.
      const auto text = FindModule(config, part.edge->to).model->text();
      const std::int64_t context = text ? text->context : of_sample;
      rows = std::min(of_sample, CeilDivide(context, work.cp));
    }
    return work.samples * rows * KeptByProjector(ProjectorShapeOf(config, *part.edge), work.tp);
  }
  const StagePlace place = layers ? *layers : PlaceOf(*part.module, part.pp);
  return part.module->model->KeptElements(place, WorkOf(config, *part.module, work));
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
  const Kept kept = ActivationElements(config, own, pp);
  const std::size_t computed = RowElement(config);
  memory.activations = static_cast<std::size_t>(kept.all) * computed;
  memory.away = static_cast<std::size_t>(kept.away) * computed;
  memory.largest_away = static_cast<std::size_t>(kept.largest_away) * computed;
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
    const StageMemory& one = need.memory;
    if (module.colocated_encoder) {
      const auto of_window = [&](std::size_t bytes) {
        return WindowActivations(config, *module.config, bytes);
      };
      need.away = of_window(one.away);
      need.activations = of_window(one.activations - one.away) +
                         std::min(need.away, of_window(2 * one.largest_away));
    } else {
      const auto kept = static_cast<std::size_t>(stage.kept);
      need.away = one.away * kept;
      // A layer that runs and one on its way out, and one that returns for the next backward. Work for
      // weights that is deferred holds what it multiplies.
      const std::size_t here = one.largest_away * (kept > 1 ? 3 : 2) + one.away * UnitsOwed(stage);
      need.activations = (one.activations - one.away) * kept + std::min(need.away, here);
      const std::int64_t left = std::min(stage.kept, RestoreAhead(plan, stage.module));
      need.gone_at_restore = (one.activations - one.away) *
                             static_cast<std::size_t>(std::max<std::int64_t>(0, stage.kept - left));
    }
    AddStored(plan, stage, mirrors, need);
    if (stage.pp == 0) AddWaitingRows(plan, stage.module, need);
    need.ranks = plan.AllRanksOf(stage);
    std::ranges::sort(need.ranks);
    needs.push_back(std::move(need));
  }
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

std::map<int, std::size_t> RankNeeds(const std::vector<StageNeed>& stages) {
  return SumByRank(stages, &StageNeed::per_rank);
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
