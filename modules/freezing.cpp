#include "modules/freezing.hpp"

#include <algorithm>

#include "modules/parameters.hpp"

namespace troupe {

bool StageTrains(const Config& config, const std::string& module, int pp) {
  const ModuleConfig& own = FindModule(config, module);
  if (own.kind == ModuleKind::kSynthetic) return !own.frozen;
  return std::ranges::any_of(StageParameters(config, module, pp),
                             [](const ParameterSpec& spec) { return !spec.frozen; });
}

bool RunsBackward(const Config& config, const std::string& module, int pp) {
  if (StageTrains(config, module, pp)) return true;
  if (pp > 0) return RunsBackward(config, module, pp - 1);
  return std::ranges::any_of(IncomingEdges(config, module), [&](const EdgeConfig* edge) {
    return EdgeCarriesGradient(config, *edge);
  });
}

bool HopCarriesGradient(const Config& config, const std::string& module, int pp) {
  return RunsBackward(config, module, pp);
}

bool EdgeCarriesGradient(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig& from = FindModule(config, edge.from);
  if (from.inline_in) return !from.frozen || (edge.through && !edge.through->frozen);
  // Another edge's projector may train on the last stage of a source that itself does not.
  const int last = from.num_stages() - 1;
  if (!from.frozen || (last > 0 && RunsBackward(config, from.name, last - 1))) return true;
  if (edge.through && edge.through->on == ProjectorEnd::kFrom && !edge.through->frozen) return true;
  return std::ranges::any_of(IncomingEdges(config, from.name), [&](const EdgeConfig* incoming) {
    return EdgeCarriesGradient(config, *incoming);
  });
}

}  // namespace troupe
