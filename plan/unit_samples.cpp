#include "plan/unit_samples.hpp"

#include <algorithm>

#include "kinds/work.hpp"
#include "layout/at.hpp"
#include "layout/colocated_shares.hpp"

namespace troupe {

const EdgeConfig* ColocatedEdge(const Config& config, const ModuleConfig& module) {
  for (const EdgeConfig& edge : config.edges) {
    if (edge.from != module.name) continue;
    if (PlacementOfEdge(config, edge) == Placement::kColocated) return &edge;
  }
  return nullptr;
}

Offload OffloadOf(const Config& config, const ModuleConfig& module) {
  if (module.offload == Offload::kNone) return Offload::kNone;  // edges take long to compare
  return ColocatedEdge(config, module) == nullptr ? Offload::kNone : module.offload;
}

UnitLength::UnitLength(const Config& config, const ModuleConfig& module)
    : window_(ColocatedEdge(config, module) == nullptr ? 1 : config.schedule.window) {}

Units UnitLength::In(std::int64_t microbatches) const {
  if (microbatches == 0) return {};
  const std::int64_t each = window_ == 0 ? microbatches : std::min(window_, microbatches);
  return {(microbatches + each - 1) / each, each};
}

static ColocatedShares SharesOn(const Config& config, const EdgeConfig& edge) {
  return {GridOf(config, *config.Find(edge.from)), GridOf(config, *config.Find(edge.to))};
}

UnitSamples SamplesOfUnit(const Config& config, const ModuleConfig& module, int dp,
                          std::int64_t microbatches, std::int64_t unit) {
  const std::int64_t samples = config.samples_per_microbatch();
  const EdgeConfig* colocated = ColocatedEdge(config, module);
  if (colocated == nullptr) return {unit, {PartOf(samples, module.layout.dp, dp)}};
  const std::int64_t window = UnitLength(config, module).In(microbatches).microbatches_each;
  const std::int64_t first = unit * window;
  const Assignment held =
      SharesOn(config, *colocated).Window(samples, first, std::min(window, microbatches - first));
  return {first, held[At(dp)]};
}

std::int64_t MostSamplesOfUnit(const Config& config, const ModuleConfig& module,
                               std::int64_t microbatches) {
  const std::int64_t samples = config.samples_per_microbatch();
  const int replicas = module.layout.dp;
  const EdgeConfig* colocated = ColocatedEdge(config, module);
  if (colocated == nullptr) return PartOf(samples, replicas, replicas - 1).size();
  const ColocatedShares shares = SharesOn(config, *colocated);
  const auto [units, window] = UnitLength(config, module).In(microbatches);
  // Modulo the period, later windows begin where one of these does, and none is longer.
  std::int64_t most = 0;
  for (std::int64_t unit = 0; unit < std::min(units, shares.period()); ++unit) {
    const std::int64_t length = std::min(window, microbatches - unit * window);
    most = std::max(most, std::ranges::max(shares.Counts(samples, unit * window, length)));
  }
  return most;
}

std::int64_t MostItemsOfSample(const Config& config, const ModuleConfig& module) {
  const std::int64_t rows = module.model->rows_per_item();
  const std::int64_t room = config.most_in_pack();
  if (rows == 0 || room <= rows) return 1;
  // Of items of several lengths, shorter ones fill what the longest leave.
  return module.model->most_length() > 1 ? CeilDivide(room, rows) : room / rows;
}

bool PadsRows(const Config& config, const ModuleConfig& module) {
  return module.model->text() && module.layout.cp == 1 && !config.data.packing;
}

}  // namespace troupe
