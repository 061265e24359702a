#include "plan/search/module_table.hpp"

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
                         const DeviceModel& device, const ModuleTable* like) {
  const ModuleConfig& own = FindModule(config, module);
  const auto split = own.model->split_layers();
  layers_.resize(split ? static_cast<std::size_t>(split->number) : 0);
  AddCosts(config, own, samples, device);
  if (like == nullptr) {
    AddParameters(config, own);
  } else {
    CopyParameters(*like);
  }
  pass_s_ = device.RatesOf(module).pass_s;
}

void ModuleTable::AddCosts(const Config& config, const ModuleConfig& own, std::int64_t samples,
                           const DeviceModel& device) {
  const StepShape shape = FullSamples(config, own, samples);
  const RankWork work = WorkOf(own, samples);
  bool before = true;
  for (const StagePart& part : StageParts(config, own.name, 0)) {
    const ModuleConfig& of = part.module ? *part.module : own;
    const RankShare share = ShareOf(config, own, part);
    const PassRates& rates = device.RatesOf(of.name);
    if (part.module != &own) {
      RankCost rank(device, rates, share);
      ListWork(config, part, shape, rank);
      TablePart& end = before ? first_ : last_;
      end.cost += rank.cost();
      if (part.runs_backward()) end.kept += static_cast<double>(KeptElements(config, part, work));
      continue;
    }
    before = false;
    const auto add = [&](const StagePlace& place, TablePart& to) {
      RankCost rank(device, rates, share);
      own.model->ListWork(place, shape, own.name, rank);
      to.cost += rank.cost();
      if (!part.runs_backward()) return;
      to.kept += static_cast<double>(KeptElements(config, part, work, place));
    };
    add({.layers = {}, .first = true}, first_);
    for (std::int64_t layer = 0; layer < num_layers(); ++layer) {
      add({.layers = {layer, layer + 1}}, layers_[static_cast<std::size_t>(layer)]);
    }
    add({.layers = {}, .last = true}, last_);
  }
}

void ModuleTable::AddParameters(const Config& config, const ModuleConfig& own) {
  const Coordinates at{.tp = own.layout.tp - 1};
  // As many replicas as experts need: how many there are does not matter to a slice.
  Layout layout = own.layout;
  layout.dp = layout.expert_group() / std::gcd(layout.expert_group(), layout.tp * layout.cp);
  bool before = true;
  for (const ParameterSpec& spec : StageParameters(config, own.name, 0)) {
    const auto slice = SliceOf(spec, layout, at);
    if (!slice) continue;
    const auto elements = static_cast<double>(NumElements(slice->shape));
    HeldElements held;
    (spec.frozen ? held.frozen : held.trained) = elements;
    if (spec.expert && !spec.frozen) held.experts = elements;
    const bool of_layer = spec.part == own.name && spec.layer;
    before = before && !of_layer;
    (of_layer ? layers_.at(static_cast<std::size_t>(*spec.layer))
     : before ? first_
              : last_)
        .held += held;
    if (spec.part == own.name && before && own.model->ties_embedding()) copy_.held += held;
  }
}

void ModuleTable::CopyParameters(const ModuleTable& like) {
  first_.held = like.first_.held;
  last_.held = like.last_.held;
  copy_.held = like.copy_.held;
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].held = like.layers_.at(i).held;
}

std::vector<TablePart> ModuleTable::Stages(const std::vector<std::int64_t>& layers) const {
  std::vector<TablePart> stages;
  std::size_t next = 0;
  for (const std::int64_t size : layers) {
    TablePart stage;
    for (std::int64_t i = 0; i < size; ++i) stage += layers_.at(next++);
    stages.push_back(stage);
  }
  stages.front() += first_;
  stages.back() += last_;
  if (stages.size() > 1) stages.back() += copy_;
  for (TablePart& stage : stages) {
    const bool backs = stage.cost.backward_s() > 0.0;
    stage.cost.forward[Spent::kStarting] += pass_s_;
    if (backs) stage.cost.inputs[Spent::kStarting] += pass_s_;
  }
  return stages;
}

}  // namespace troupe
