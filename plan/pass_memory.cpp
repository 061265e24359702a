#include "plan/pass_memory.hpp"

#include <algorithm>
#include <utility>

#include "plan/job_plan.hpp"
#include "plan/layer_split.hpp"
#include "plan/row_cuts.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {
namespace {

/// Returns `work` of a whole module as that of one part of it.
RankWork WorkOf(const Config& config, const ModuleConfig& of, RankWork work) {
  work.samples *= MostItemsOfSample(config, of);
  work.recompute = of.recompute;
  if (of.inline_in) work.cp = 1;
  return work;
}

/// The work of a microbatch on one rank of the module's largest replica.
RankWork WorkOfMicrobatch(const Config& config, const ModuleConfig& module) {
  const auto replicas = static_cast<std::int64_t>(module.layout.dp);
  return {.samples = CeilDivide(config.samples_per_microbatch(), replicas),
          .tp = module.layout.tp,
          .etp = module.layout.etp,
          .cp = module.layout.cp,
          .cuts_rows = module.layout.cuts_rows()};
}

/// Whether products and activations make copies in float32 (modules/torch/products.hpp).
bool Widens(const Config& config) {
  return config.run.precision == Precision::kBFloat16 && config.cluster.backend == Backend::kCpu;
}

std::int64_t Bytes(const Config& config, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(RowElementBytes(config));
}

/// A gated activation that is widened has its inputs, its outputs, their gradients and a product of two
/// of them in float32.
std::int64_t BackwardBytes(const Config& config, const LayerSpace& space) {
  constexpr std::int64_t kWide = 4;
  if (Widens(config)) return Bytes(config, space.rows) + kWide * (space.up + 4 * space.rest);
  return Bytes(config, space.rows + space.up + space.rest);
}

/// What a loss has for a while: a chunk of logits and the gradients of its rows.
std::int64_t LossBytes(const Config& config, const ModuleConfig& module, const RankWork& work) {
  const auto text = module.model->text();
  if (!text) return 0;
  const bool short_rows = config.run.precision == Precision::kBFloat16;
  const std::int64_t vocab = CeilDivide(text->vocab, work.tp);
  const std::int64_t rows = work.samples * CeilDivide(text->context, work.cp);
  const bool copies = Widens(config) || config.cluster.backend == Backend::kCuda;
  const std::int64_t chunk = std::min(rows, LogitRows(vocab, copies));
  const std::int64_t width = module.model->row_width();
  const std::int64_t logit = config.run.precision == Precision::kFloat64 ? 8 : 4;
  const std::int64_t head = Widens(config) ? logit * vocab * width : 0;
  return chunk * vocab * (logit + (short_rows ? 2 : 0)) + head +
         Bytes(config, (rows + chunk) * width);
}

/// What a pass of one part has for a while, and what it keeps before its layers are left.
struct PartMemory {
  std::int64_t kept = 0;
  std::int64_t owed = 0;      ///< likewise, when all that was computed again is there
  std::int64_t tail = 0;      ///< of `kept`: of what comes after the layers
  std::int64_t forward = 0;   ///< for a while, if nothing is kept
  std::int64_t backward = 0;  ///< in a layer
  std::int64_t last = 0;      ///< likewise, without what is computed again
  std::int64_t loss = 0;      ///< for a while, while `tail` is there
};

PartMemory MemoryOf(const Config& config, const StagePart& part, const RankWork& work) {
  PartMemory memory;
  const std::int64_t elements = KeptElements(config, part, work);
  if (part.runs_backward()) memory.kept = Bytes(config, elements);
  if (part.edge != nullptr) {
    // The gradients of a projector's rows are as long as these.
    memory.forward = Bytes(config, elements);
    memory.backward = memory.owed = memory.kept;
    return memory;
  }
  const ModuleConfig& module = *part.module;
  const StagePlace place = PlaceOf(module, part.pp);
  RankWork own = WorkOf(config, module, work);
  const LayerSpace space = module.model->SpaceElements(place, own);
  memory.forward = Bytes(config, space.forward);
  if (!part.runs_backward()) return memory;
  memory.backward = BackwardBytes(config, space);
  own.recompute = {};
  memory.last = BackwardBytes(config, module.model->SpaceElements(place, own));
  memory.owed = Bytes(config, OwedElements(config, part, work));
  memory.tail =
      Bytes(config, KeptElements(config, part, work, StagePlace{.layers = {}, .last = place.last}));
  if (place.last && !module.model->emits_rows()) memory.loss = LossBytes(config, module, work);
  return memory;
}

/// Adds what leaves of the layers of a part.
void AddAway(const Config& config, const StagePart& part, const RankWork& whole, UnitMemory& unit) {
  const ModuleConfig& module = *part.module;
  if (module.offload_activations.none()) return;
  const RankWork work = WorkOf(config, module, whole);
  const Interval layers = PlaceOf(module, part.pp).layers;
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    if (!ActivationsLeave(module, part.pp, layer)) continue;
    const StagePlace alone{.layers = {layer, layer + 1}};
    const auto away =
        static_cast<std::size_t>(Bytes(config, module.model->KeptElements(alone, work)));
    unit.away += away;
    unit.largest_away = std::max(unit.largest_away, away);
  }
}

/// The units of a stage that hold memory.
struct InFlight {
  std::size_t kept = 0;
  std::size_t owed = 0;  ///< the part of `kept` whose work for weights is deferred
};

/// On the device. Work for weights that is deferred holds what it multiplies, and as many gradients as
/// there were other activations.
std::size_t HeldOf(const UnitMemory& unit, const InFlight& units) {
  return (unit.kept - unit.away) * units.kept +
         HereOf(unit.away, unit.largest_away, units.kept, units.owed) +
         (unit.owed - std::min(unit.owed, unit.kept)) * units.owed;
}

/// The passes of some stages in the order in which they begin.
std::vector<std::pair<int, TimedPass>> PassesOf(const JobPlan& plan,
                                                const std::map<int, UnitMemory>& units) {
  std::vector<std::pair<int, TimedPass>> passes;
  for (const auto& [stage, unit] : units) {
    for (const TimedPass& pass : plan.equal_passes().stages[At(stage)]) {
      passes.emplace_back(stage, pass);
    }
  }
  std::ranges::stable_sort(passes, {}, [](const auto& pass) { return pass.second.begin_ns; });
  return passes;
}

}  // namespace

std::size_t RowElementBytes(const Config& config) {
  if (config.run.precision == Precision::kBFloat16) return 2;
  return config.run.precision == Precision::kFloat64 ? 8 : 4;
}

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

std::int64_t OwedElements(const Config& config, const StagePart& part, const RankWork& work,
                          const std::optional<StagePlace>& layers) {
  if (part.edge != nullptr) return KeptElements(config, part, work);
  RankWork own = WorkOf(config, *part.module, work);
  own.recompute = {};
  return part.module->model->KeptElements(layers ? *layers : PlaceOf(*part.module, part.pp), own);
}

std::size_t AwayBytes(const Config& config, const std::string& module, int pp,
                      std::int64_t samples) {
  UnitMemory unit;
  RankWork work = WorkOfMicrobatch(config, FindModule(config, module));
  work.samples = samples;
  for (const StagePart& part : StageParts(config, module, pp)) {
    if (part.edge == nullptr && part.runs_backward()) AddAway(config, part, work, unit);
  }
  return unit.away;
}

UnitMemory EstimateUnit(const Config& config, const std::string& module, int pp) {
  UnitMemory unit;
  const ModuleConfig& own = FindModule(config, module);
  if (!own.model->computes()) return unit;
  const RankWork work = WorkOfMicrobatch(config, own);
  std::vector<PartMemory> parts;
  std::int64_t kept = 0;
  std::int64_t owed = 0;
  std::int64_t last = 0;
  for (const StagePart& part : StageParts(config, module, pp)) {
    parts.push_back(MemoryOf(config, part, work));
    kept += parts.back().kept;
    owed += parts.back().owed;
    last = std::max(last, parts.back().last);
    if (part.edge == nullptr && part.runs_backward()) AddAway(config, part, work, unit);
  }
  // `kept` counts what later parts keep; a forward of an earlier one runs before they have it, and a
  // backward after they have released it.
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t later = 0;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    backward = std::max({backward, part->loss - later, part->backward - later - part->tail});
    later += part->kept;
    if (part->kept == 0) forward = std::max(forward, part->forward - later);
  }
  unit.kept = static_cast<std::size_t>(kept);
  unit.owed = static_cast<std::size_t>(owed);
  unit.last = static_cast<std::size_t>(last);
  unit.forward = static_cast<std::size_t>(forward);
  unit.backward = static_cast<std::size_t>(backward);
  return unit;
}

static std::int64_t RowWidthOn(const Config& config, const EdgeConfig& edge) {
  const bool projected = edge.through && edge.through->on == ProjectorEnd::kFrom;
  return projected ? ProjectorShapeOf(config, edge).out
                   : FindModule(config, edge.from).model->row_width();
}

static const EdgeConfig& ConfigOf(const JobPlan& plan, const EdgePlan& edge) {
  return *plan.config().FindEdge(plan.ModuleOf(edge.from).config->name,
                                 plan.ModuleOf(edge.to).config->name);
}

std::int64_t RowWidthOn(const JobPlan& plan, const EdgePlan& edge) {
  return RowWidthOn(plan.config(), ConfigOf(plan, edge));
}

std::size_t ArrivingBytes(const Config& config, const EdgeConfig& edge, std::int64_t samples) {
  const ModuleConfig& from = FindModule(config, edge.from);
  const RowCut cut = DestinationCut(config, edge);
  const std::int64_t items = samples * MostItemsOfSample(config, from);
  const std::int64_t rows =
      CeilDivide(items * from.model->rows_per_item(), std::int64_t{cut.parts} * cut.slices);
  return static_cast<std::size_t>(Bytes(config, rows * RowWidthOn(config, edge)));
}

std::size_t ArrivingBytes(const JobPlan& plan, const EdgePlan& edge) {
  const int replicas = plan.ModuleOf(edge.to).config->layout.dp;
  return ArrivingBytes(plan.config(), ConfigOf(plan, edge),
                       CeilDivide(plan.config().samples_per_microbatch(), replicas));
}

std::size_t RowBytesOf(const Config& config, const ModuleConfig& module) {
  const RankWork work = WorkOfMicrobatch(config, module);
  const auto text = module.model->text();
  const std::int64_t rows =
      text ? text->context : MostItemsOfSample(config, module) * module.model->rows_per_item();
  return static_cast<std::size_t>(
      Bytes(config, work.samples * CeilDivide(rows, work.cp) * module.model->row_width()));
}

std::size_t TransitBytes(const JobPlan& plan, const StagePlan& stage) {
  const ModuleConfig& module = *plan.ModuleOf(stage.module).config;
  const int hops = int{stage.pp > 0} + int{stage.pp + 1 < module.num_stages()};
  const int parts = module.layout.cuts_rows() ? module.layout.tp : 1;
  std::size_t bytes = RowBytesOf(plan.config(), module) * static_cast<std::size_t>(hops) /
                      static_cast<std::size_t>(parts);
  for (const EdgePlan& edge : plan.edges()) {
    if (edge.placement == Placement::kColocated) continue;  // waiting rows of windows
    const bool arrives = edge.to == stage.module && stage.pp == 0;
    const bool leaves = edge.from == stage.module && stage.pp + 1 == module.num_stages();
    if (arrives || leaves) bytes += ArrivingBytes(plan, edge);
  }
  return bytes;
}

std::map<int, HeldByPasses> HeldOnRank(const JobPlan& plan,
                                       const std::map<int, UnitMemory>& units) {
  std::map<int, InFlight> flights;
  std::map<int, HeldByPasses> most;
  std::size_t most_bytes = 0;
  const auto look = [&](int runs, std::size_t workspace) {
    std::map<int, HeldByPasses> held;
    std::size_t bytes = workspace;
    for (const auto& [stage, unit] : units) {
      held[stage] = {HeldOf(unit, flights[stage]), stage == runs ? workspace : 0};
      bytes += held[stage].activations;
    }
    if (bytes < most_bytes) return;
    most_bytes = bytes;
    most = std::move(held);
  };
  for (const auto& [stage, pass] : PassesOf(plan, units)) {
    InFlight& flight = flights[stage];
    const UnitMemory& unit = units.at(stage);
    const bool splits = plan.stages()[At(stage)].rule.splits_backward;
    switch (pass.pass.kind) {
      case PassKind::kForward:
        ++flight.kept;
        look(stage, unit.forward);
        break;
      case PassKind::kBackward:
        look(stage, unit.backward);
        if (!splits) {
          --flight.kept;
          break;
        }
        ++flight.owed;
        look(stage, unit.last);
        break;
      case PassKind::kWeight:
        --flight.kept;
        --flight.owed;
        break;
    }
  }
  return most;
}

}  // namespace troupe
