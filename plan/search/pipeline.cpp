#include "plan/search/pipeline.hpp"

#include <algorithm>

#include "plan/cost/stage_cost.hpp"
#include "plan/unit_samples.hpp"
#include "schedule/schedule.hpp"

namespace troupe {

static StageSums SumsOf(const TablePart& stage, std::int64_t layers, double row_bytes) {
  const double weights_s = stage.cost.weights.total();
  const double pass_s = stage.cost.forward.total() + stage.cost.backward_s();
  return {
      pass_s, pass_s - 2.0 * weights_s, stage.cost.backward_s(), stage.kept * row_bytes, stage.held,
      layers};
}

std::vector<StageSums> SumsOf(const ModuleTable& table, const std::vector<std::int64_t>& sizes,
                              double row_bytes) {
  std::vector<StageSums> sums;
  sums.reserve(sizes.size());
  for (const TablePart& stage : table.Stages(sizes)) {
    sums.push_back(SumsOf(stage, sizes[sums.size()], row_bytes));
  }
  return sums;
}

/// What a unit takes and keeps that is `weight` of the way from one to the other.
StageSums Between(const StageSums& one, const StageSums& two, double weight) {
  const auto mix = [weight](double a, double b) { return a + weight * (b - a); };
  return {mix(one.pass_s, two.pass_s),
          mix(one.split_s, two.split_s),
          mix(one.backward_s, two.backward_s),
          mix(one.kept_bytes, two.kept_bytes),
          one.held,
          one.layers};
}

/// The time of a unit's tensor over the slowest hop between stages.
double PipelineModel::SlowestHop(const Config& config, const ModuleConfig& module,
                                 std::int64_t samples) const {
  const Layout& layout = module.layout;
  if (layout.pp == 1) return 0.0;
  const auto text = module.model->text();
  const std::int64_t rows =
      samples *
      (text ? text->context : MostItemsOfSample(config, module) * module.model->rows_per_item());
  const double parts = layout.cp * (layout.cuts_rows() ? layout.tp : 1.0);
  const Topology& topology = device_.topology;
  const bool inside = layout.num_ranks() <= topology.devices_per_node;
  return (inside ? topology.inside : topology.between)
      .TimeOf(RowBytes(config) * Product(rows, module.model->row_width()) / parts);
}

/// The most units that each stage of an interleaved pipeline keeps at one time.
const std::vector<std::int64_t>& PipelineModel::KeptInterleaved(int pp, int chunks,
                                                                std::int64_t units) {
  // Further units repeat what these do.
  const std::int64_t enough = std::min<std::int64_t>(units, std::int64_t{4} * pp);
  auto [found, is_new] = kept_interleaved_.try_emplace({pp, chunks, enough});
  if (!is_new) return found->second;
  std::vector<std::int64_t> kept(static_cast<std::size_t>(pp) * static_cast<std::size_t>(chunks));
  found->second.resize(kept.size());
  for (const DeviceOrder& order : InterleavedOrders(pp, chunks, enough)) {
    for (const StagePass& at : order) {
      const auto stage = static_cast<std::size_t>(at.stage);
      kept[stage] += at.pass.kind == PassKind::kForward ? 1 : -1;
      found->second[stage] = std::max(found->second[stage], kept[stage]);
    }
  }
  return found->second;
}

Pipeline PipelineModel::Of(const Config& config, const ModuleConfig& module,
                           const std::vector<StageSums>& stages, const PipelineRun& run) {
  const Layout& layout = module.layout;
  const auto ranks = static_cast<std::size_t>(layout.pp);
  const StateShardings shardings = ShardingsOf(config, module);
  const StateWeights weights = WeightsOf(config, shardings);
  busy_s_.assign(ranks, 0.0);
  bytes_.assign(ranks, 0.0);
  updates_s_.assign(ranks, 0.0);
  Pipeline pipeline;
  double sum_s = 0.0;
  double split_s = 0.0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageSums& stage = stages[i];
    const std::size_t rank = i % ranks;
    busy_s_[rank] += stage.pass_s;
    sum_s += stage.pass_s;
    split_s = std::max(split_s, stage.split_s);
    std::int64_t kept = static_cast<std::int64_t>(stages.size() - i) + run.units_behind;
    if (run.kind == ScheduleKind::kZbH1) kept = layout.pp;
    if (run.kind == ScheduleKind::kInterleaved) {
      kept = KeptInterleaved(layout.pp, module.chunks, run.units)[i];
    }
    bytes_[rank] += weights.BytesOf(stage.held) +
                    stage.kept_bytes * static_cast<double>(std::min(kept, run.units));
    const HeldElements& held = stage.held;
    const UpdateCost update =
        CostOfUpdate(config, device_, layout, shardings.others,
                     {.trained = held.trained,
                      .own = (held.trained - held.experts) / shardings.others.shards +
                             held.experts / shardings.experts.shards,
                      .layers = stage.layers,
                      .last_backward_s = stage.backward_s});
    updates_s_[rank] += update.exposed_s + update.update_s + update.gather_s;
  }
  pipeline.update_s = std::ranges::max(updates_s_);
  // A stage that has sent a unit on waits for the hop before it can take the answer.
  const double hop_s = SlowestHop(config, module, run.samples);
  pipeline.period_s = std::ranges::max(busy_s_) + hop_s;
  pipeline.bytes = std::ranges::max(bytes_);
  pipeline.first_s = sum_s;
  if (run.kind == ScheduleKind::kInterleaved) {
    pipeline.first_s =
        pipeline.period_s * (1.0 + (layout.pp - 1.0) / static_cast<double>(module.chunks));
  }
  if (run.kind == ScheduleKind::kZbH1) {
    pipeline.first_s = pipeline.period_s + (layout.pp - 1.0) * std::max(0.0, split_s);
  }
  pipeline.first_s += 2.0 * hop_s * static_cast<double>(stages.size() - 1);
  return pipeline;
}

}  // namespace troupe
