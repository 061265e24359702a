#include "plan/cost/stage_cost.hpp"

#include <algorithm>

#include "plan/flat_layout.hpp"
#include "plan/layer_split.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/pass_memory.hpp"
#include "plan/stage_work.hpp"
#include "plan/unit_samples.hpp"

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

std::int64_t SizeFor(const ModuleConfig& module, const StepShape& shape) {
  if (module.model->text()) return shape.samples * shape.tokens;
  const auto length = shape.lengths.find(module.name);
  return length == shape.lengths.end() ? 0 : length->second;
}

double FilledPart(const Config& config, const ModuleConfig& module, std::int64_t samples,
                  std::int64_t size) {
  const auto text = module.model->text();
  const std::int64_t full =
      samples *
      (text ? text->context : MostItemsOfSample(config, module) * module.model->most_length());
  return full == 0 ? 0.0 : static_cast<double>(size) / static_cast<double>(full);
}

bool CopiesActivations(const Config& config, const DeviceModel& device, const std::string& module,
                       int pp) {
  return device.host_bytes_per_s > 0.0 && AwayBytes(config, module, pp, 1) > 0;
}

/// Adds what passes wait for copies: a forward for those out, a backward for those back. A layer runs
/// while the one before it is copied, so a pass takes as long as its copies, or what it computes.
static void AddCopies(const Config& config, const DeviceModel& device, const ModuleConfig& host,
                      int pp, const StepShape& shape, PassCost& cost) {
  if (!CopiesActivations(config, device, host.name, pp)) return;
  const double copy_s = FilledPart(config, host, shape.samples, SizeFor(host, shape)) *
                        static_cast<double>(AwayBytes(config, host.name, pp, shape.samples)) /
                        device.host_bytes_per_s;
  // Work for weights that is deferred hides no copy.
  const bool split = config.schedule.kind == ScheduleKind::kZbH1;
  const double hides_s = split ? cost.inputs.total() : cost.backward_s();
  cost.forward[Spent::kCopies] += std::max(0.0, copy_s - cost.forward.total());
  cost.inputs[Spent::kCopies] += std::max(0.0, copy_s - hides_s);
}

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
  AddCopies(config, device, host, pp, shape, cost);
  const double pass_s = device.RatesOf(module).pass_s;
  cost.forward[Spent::kStarting] += pass_s;
  if (RunsBackward(config, module, pp)) cost.inputs[Spent::kStarting] += pass_s;
  return cost;
}

UpdateCost CostOfUpdate(const Config& config, const DeviceModel& device, const Layout& layout,
                        const StateSharding& sharding, const UpdateWork& work) {
  UpdateCost cost;
  if (work.trained <= 0.0) return cost;
  cost.update_s = work.own * device.update_parameter_s;
  const int holders = layout.num_holders();
  const int shards = sharding.shards;
  const double bytes = work.trained * StateBytes(config);
  const LinkRate link = device.topology.LinkOf(holders, layout.tp);
  if (holders > 1) {
    // A rank sums its part of what all have. Where the state is not sharded over all, it gathers the
    // sums, or the parameters that an instance shards.
    cost.reduce_s = SecondsOfCollective(device, link, bytes, holders, true);
    if (shards < holders) {
      cost.reduce_s += SecondsOfCollective(device, link, bytes / shards, holders / shards, false);
    }
  }
  if (shards > 1) {
    const double gathered = bytes * RowBytes(config) / StateBytes(config);
    cost.gather_s =
        device.exposed.gradients * SecondsOfCollective(device, link, gathered, shards, false);
  }
  const auto layers = static_cast<double>(work.layers);
  const double hides = layers > 0.0 ? work.last_backward_s * (layers - 1.0) / layers : 0.0;
  cost.exposed_s =
      device.exposed.gradients * std::max(cost.reduce_s / (layers + 1.0), cost.reduce_s - hides);
  return cost;
}

UpdateCost CostOfUpdate(const Config& config, const DeviceModel& device, const std::string& module,
                        int pp, double last_backward_s) {
  const ModuleConfig& own = FindModule(config, module);
  if (!own.model->computes() || !StageTrains(config, module, pp)) return {};
  const ShardAddress shard{.module = module, .pp = pp, .tp = own.layout.tp - 1};
  const StateShardings shardings = ShardingsOf(config, own);
  const FlatLayout flat(StageParameters(config, module, pp), shard, own.layout, shardings);
  return CostOfUpdate(config, device, own.layout, shardings.others,
                      {.trained = static_cast<double>(flat.num_trained()),
                       .own = static_cast<double>(flat.num_own()),
                       .layers = PlaceOf(own, pp).layers.size(),
                       .last_backward_s = last_backward_s});
}

}  // namespace troupe
