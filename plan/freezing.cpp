#include "plan/freezing.hpp"

#include <algorithm>
#include <vector>

#include "plan/parameters.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

bool StageTrains(const Config& config, const std::string& module, int pp) {
  return std::ranges::any_of(StageParts(config, module, pp), &StagePart::trains);
}

bool RunsBackward(const Config& config, const std::string& module, int pp) {
  return std::ranges::any_of(StageParts(config, module, pp), &StagePart::runs_backward);
}

bool HopCarriesGradient(const Config& config, const std::string& module, int pp) {
  return RunsBackward(config, module, pp);
}

bool EdgeCarriesGradient(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig& from = FindModule(config, edge.from);
  if (from.inline_in) return !from.frozen || (edge.through && !edge.through->frozen);
  // The rows come from the edge's projector if that runs there, else from the layers. Projectors of
  // other edges on the same stage do not matter.
  const bool projects = edge.through && edge.through->on == ProjectorEnd::kFrom;
  const std::vector<StagePart> parts = StageParts(config, from.name, from.num_stages() - 1);
  return std::ranges::any_of(parts, [&](const StagePart& part) {
    const bool gives_rows = projects ? part.edge && *part.edge == edge : part.module == &from;
    return gives_rows && part.runs_backward();
  });
}

}  // namespace troupe
