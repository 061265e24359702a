#include "plan/cost/stage_cost.hpp"

#include <algorithm>

#include "plan/flat_layout.hpp"
#include "plan/layer_split.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

/// Stated for the stages of a plain pipeline; virtual ones share that.
PassCost StatedCost(const StatedTimes& stated, int chunks) {
  const double share = 1e-3 / chunks;
  PassCost cost;
  cost.forward[Spent::kLinears] = stated.forward_ms * share;
  cost.inputs[Spent::kLinears] = stated.backward_ms * share * (1.0 - stated.weight_share);
  cost.weights[Spent::kLinears] = stated.backward_ms * share * stated.weight_share;
  return cost;
}

}  // namespace

double StateBytes(const Config& config) {
  return config.run.precision == Precision::kFloat64 ? 8.0 : 4.0;
}

double RowBytes(const Config& config) {
  return config.run.precision == Precision::kBFloat16 ? 2.0 : StateBytes(config);
}

RankShare ShareOf(const Config& config, const ModuleConfig& host, const StagePart& part) {
  RankShare share{.layout = host.layout,
                  .cp = host.layout.cp,
                  .weight_gradient = part.weight_gradient(),
                  .input_gradient = part.asks_input_gradient(),
                  .element_bytes = RowBytes(config),
                  .ring = config.schedule.context_exchange == ContextExchange::kRing};
  if (part.module == nullptr) return share;
  share.recompute = part.module->recompute;
  // Every rank along cp computes all images of an inline encoder.
  if (part.module->inline_in) share.cp = 1;
  return share;
}

PassCost CostOfStage(const Config& config, const DeviceModel& device, const std::string& module,
                     int pp, const StepShape& shape) {
  const ModuleConfig& host = FindModule(config, module);
  if (const auto stated = host.model->stated_times()) return StatedCost(*stated, host.chunks);
  PassCost cost;
  for (const StagePart& part : StageParts(config, module, pp)) {
    const ModuleConfig& of = part.module ? *part.module : host;
    RankCost rank(device, device.RatesOf(of.name), ShareOf(config, host, part));
    ListWork(config, part, shape, rank);
    cost += rank.cost();
  }
  const double pass_s = device.RatesOf(module).pass_s;
  cost.forward[Spent::kStarting] += pass_s;
  if (RunsBackward(config, module, pp)) cost.inputs[Spent::kStarting] += pass_s;
  return cost;
}

UpdateCost CostOfUpdate(const Config& config, const DeviceModel& device, const std::string& module,
                        int pp, double last_backward_s) {
  const ModuleConfig& own = FindModule(config, module);
  UpdateCost cost;
  if (!own.model->computes() || !StageTrains(config, module, pp)) return cost;
  const Layout& layout = own.layout;
  const ShardAddress shard{.module = module, .pp = pp, .tp = layout.tp - 1};
  const StateShardings shardings = ShardingsOf(config, own);
  const FlatLayout flat(StageParameters(config, module, pp), shard, layout, shardings);
  cost.update_s = static_cast<double>(flat.num_own()) * device.update_parameter_s;

  const int holders = layout.num_holders();
  const int shards = shardings.others.shards;
  const double bytes = static_cast<double>(flat.num_trained()) * StateBytes(config);
  const LinkRate link = device.topology.LinkOf(holders, layout.tp);
  // A rank sums its part of what an instance has, then that part over instances. Without a sharded
  // state every replica needs all sums.
  const double sums = RingTime(link, bytes, holders) + bytes * device.sum_byte_s * (holders > 1);
  const double rest = shards < holders ? RingTime(link, bytes / shards, holders / shards) : 0.0;
  cost.reduce_s = sums + rest;
  if (shards > 1) {
    cost.gather_s = device.exposed.gradients *
                    RingTime(link, bytes * RowBytes(config) / StateBytes(config), shards);
  }
  const auto layers = static_cast<double>(PlaceOf(own, pp).layers.size());
  const double hides = layers > 0.0 ? last_backward_s * (layers - 1.0) / layers : 0.0;
  cost.exposed_s =
      device.exposed.gradients * std::max(cost.reduce_s / (layers + 1.0), cost.reduce_s - hides);
  return cost;
}

}  // namespace troupe
