#include "modules/unit_samples.hpp"

#include <algorithm>

namespace troupe {

const EdgeConfig* ColocatedEdge(const Config& config, const ModuleConfig& module) {
  for (const EdgeConfig& edge : config.edges) {
    if (edge.from != module.name) continue;
    if (PlacementOfEdge(config, edge) == Placement::kColocated) return &edge;
  }
  return nullptr;
}

std::int64_t NumUnits(const Config& config, const ModuleConfig& module, std::int64_t microbatches) {
  const bool windows = ColocatedEdge(config, module) != nullptr;
  return UnitsIn(microbatches, windows ? config.schedule.window : 1);
}

UnitSamples SamplesOfUnit(const Config& config, const ModuleConfig& module, int dp,
                          std::int64_t microbatches, std::int64_t unit) {
  const std::int64_t samples = config.samples_per_microbatch();
  const Grid grid = GridOf(config, module);
  const EdgeConfig* colocated = ColocatedEdge(config, module);
  if (colocated == nullptr) return {unit, {PartOf(samples, grid.layout().dp, dp)}};
  const std::int64_t window = WindowOf(config, microbatches);
  const std::int64_t first = unit * window;
  const auto length = static_cast<int>(std::min(window, microbatches - first));
  const Grid language = GridOf(config, *config.Find(colocated->to));
  return {first,
          ColocatedAssignment(grid, language, samples, length)[static_cast<std::size_t>(dp)]};
}

}  // namespace troupe
