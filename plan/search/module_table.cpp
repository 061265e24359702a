#include "plan/search/module_table.hpp"

#include <algorithm>
#include <numeric>

#include "plan/cost/rank_cost.hpp"
#include "plan/cost/stage_cost.hpp"
#include "plan/layer_split.hpp"
#include "plan/memory.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

RankWork WorkOf(const ModuleConfig& module, std::int64_t samples) {
  return {.samples = samples,
          .tp = module.layout.tp,
          .etp = module.layout.etp,
          .cp = module.layout.cp,
          .cuts_rows = module.layout.cuts_rows()};
}

}  // namespace

StateWeights WeightsOf(const Config& config, const StateShardings& shardings) {
  const bool mixed = config.run.precision == Precision::kBFloat16;
  const double element = StateBytes(config);
  // Values (rounded ones, and masters of the own part), gradients, and both moments of the own part.
  const auto trained = [&](int shards) {
    const double own = element / shards;
    return (mixed ? element / 2 + own : element) + element + 2.0 * own;
  };
  return {trained(shardings.others.shards), trained(shardings.experts.shards),
          mixed ? element / 2 : element};
}

ModuleTable::ModuleTable(const Config& config, const std::string& module, std::int64_t samples,
                         const DeviceModel& device, const AverageWork& average,
                         const AlikeLayers& layers, const ModuleTable* like)
    : num_layers_(layers.num_layers()), kinds_(layers.num_kinds()) {
  const ModuleConfig& own = FindModule(config, module);
  ends_in_loss_ = !own.model->emits_rows();
  hides_copies_ = device.host_bytes_per_s > 0.0;
  AddCosts(config, own, samples, device, average, layers);
  if (like == nullptr) {
    AddParameters(config, own, layers);
  } else {
    CopyParameters(*like);
  }
  pass_s_ = device.RatesOf(module).pass_s;
}

static void AddCost(const PassCost& cost, PartSums& to) {
  to.pass_s += cost.forward.total() + cost.backward_s();
  to.weights_s += cost.weights.total();
  to.backward_s += cost.backward_s();
}

void ModuleTable::AddCosts(const Config& config, const ModuleConfig& own, std::int64_t samples,
                           const DeviceModel& device, const AverageWork& average,
                           const AlikeLayers& layers) {
  const StepShape shape = average.Of(config, own, samples);
  const RankWork work = WorkOf(own, samples);
  const double row_bytes = RowBytes(config);
  bool before = true;
  for (const StagePart& part : StageParts(config, own.name, 0)) {
    const ModuleConfig& of = part.module ? *part.module : own;
    const RankShare share = ShareOf(config, own, part);
    const PassRates& rates = device.RatesOf(of.name);
    if (part.module != &own) {
      RankCost rank(device, rates, share);
      ListWork(config, part, shape, rank);
      PartSums& end = before ? first_ : last_;
      AddCost(rank.cost(), end);
      if (!part.runs_backward()) continue;
      end.kept_bytes += row_bytes * static_cast<double>(KeptElements(config, part, work));
      end.owed_bytes += row_bytes * static_cast<double>(OwedElements(config, part, work));
      continue;
    }
    before = false;
    double forward_s = 0.0;
    const auto add = [&](const StagePlace& place, PartSums& to) {
      RankCost rank(device, rates, share);
      own.model->ListWork(place, shape, own.name, rank);
      AddCost(rank.cost(), to);
      forward_s = rank.cost().forward.total();
      if (!part.runs_backward()) return;
      to.kept_bytes += row_bytes * static_cast<double>(KeptElements(config, part, work, place));
      to.owed_bytes += row_bytes * static_cast<double>(OwedElements(config, part, work, place));
    };
    add({.layers = {}, .first = true}, first_);
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const std::int64_t layer = layers.FirstOf(kind);
      add({.layers = {layer, layer + 1}}, kinds_[kind]);
      hides_copies_ =
          hides_copies_ && kinds_[kind].kept_bytes <= device.host_bytes_per_s * forward_s;
    }
    add({.layers = {}, .last = true}, last_);
  }
}

void ModuleTable::AddParameters(const Config& config, const ModuleConfig& own,
                                const AlikeLayers& layers) {
  const Coordinates at{.tp = own.layout.tp - 1};
  // As many replicas as experts need: how many there are does not matter to a slice.
  Layout layout = own.layout;
  layout.dp = layout.expert_group() / std::gcd(layout.expert_group(), layout.tp * layout.cp);
  bool before = true;
  for (const ParameterSpec& spec : StageParameters(config, own.name, 0)) {
    const bool of_layer = spec.part == own.name && spec.layer;
    before = before && !of_layer;
    if (of_layer && layers.FirstOf(layers.KindOf(*spec.layer)) != *spec.layer) continue;
    const auto slice = SliceOf(spec, layout, at);
    if (!slice) continue;
    const auto elements = static_cast<double>(NumElements(slice->shape));
    HeldElements held;
    (spec.frozen ? held.frozen : held.trained) = elements;
    if (spec.expert && !spec.frozen) held.experts = elements;
    (of_layer ? kinds_[layers.KindOf(*spec.layer)] : before ? first_ : last_).held.Add(held, 1.0);
    if (spec.part == own.name && before && own.model->ties_embedding()) copy_.held.Add(held, 1.0);
  }
}

void ModuleTable::CopyParameters(const ModuleTable& like) {
  first_.held = like.first_.held;
  last_.held = like.last_.held;
  copy_.held = like.copy_.held;
  for (std::size_t i = 0; i < kinds_.size(); ++i) kinds_[i].held = like.kinds_.at(i).held;
}

std::vector<StageSums> ModuleTable::Stages(const std::vector<StageRun>& runs) const {
  std::vector<StageSums> stages;
  stages.reserve(runs.size());
  for (const StageRun& run : runs) {
    StageSums& sums = stages.emplace_back(StageSums{run.stages, run.layers, {}});
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      sums.each.Add(kinds_[kind], static_cast<double>(run.of_kind[kind]));
      if (run.of_kind[kind] == 0) continue;
      sums.largest_away_bytes = std::max(sums.largest_away_bytes, kinds_[kind].kept_bytes);
    }
    sums.away_bytes = sums.each.kept_bytes;  // before what is not of layers is added
  }
  if (ends_in_loss_ && num_layers_ > 0) {
    stages.back().away_bytes -= kinds_.back().kept_bytes;  // the last layer stays
  }
  stages.front().each.Add(first_);
  stages.back().each.Add(last_);
  if (stages.size() > 1) stages.back().each.Add(copy_);
  for (StageSums& sums : stages) {
    const bool backs = sums.each.backward_s > 0.0;
    sums.each.pass_s += backs ? 2.0 * pass_s_ : pass_s_;
    if (backs) sums.each.backward_s += pass_s_;
  }
  return stages;
}

double ModuleTable::LeastOfLargest(int stages) const {
  double layer_s = kinds_.empty() ? 0.0 : kinds_.front().pass_s;
  for (const PartSums& kind : kinds_) layer_s = std::min(layer_s, kind.pass_s);
  const auto most_layers = static_cast<double>(CeilDivide(num_layers_, stages));
  return std::max({most_layers * layer_s, first_.pass_s + layer_s, last_.pass_s + layer_s});
}

}  // namespace troupe
