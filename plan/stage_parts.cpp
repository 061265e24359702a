#include "plan/stage_parts.hpp"

#include "plan/freezing.hpp"
#include "plan/parameters.hpp"

namespace troupe {
namespace {

StagePart LayersOf(const ModuleConfig& module, int pp, bool input_gradient) {
  return {.module = &module, .pp = pp, .trains = !module.frozen, .input_gradient = input_gradient};
}

StagePart ProjectorOf(const EdgeConfig& edge, bool input_gradient) {
  return {.edge = &edge, .trains = !edge.through->frozen, .input_gradient = input_gradient};
}

bool ProjectsAt(const EdgeConfig& edge, ProjectorEnd end) {
  return edge.through && edge.through->on == end;
}

/// Adds the parts that run before the layers of a first stage. Returns whether the rows that they
/// emit have a gradient.
bool AddSources(const Config& config, const std::string& module, std::vector<StagePart>& parts) {
  bool any = false;
  for (const EdgeConfig* edge : InlineEdges(config, module)) {
    StagePart part = LayersOf(FindModule(config, edge->from), 0, false);
    parts.push_back(part);
    if (edge->through) parts.push_back(part = ProjectorOf(*edge, part.runs_backward()));
    any = any || part.runs_backward();
  }
  for (const EdgeConfig* edge : IncomingEdges(config, module)) {
    const bool carries = EdgeCarriesGradient(config, *edge);
    const bool projects = ProjectsAt(*edge, ProjectorEnd::kTo);
    if (projects) parts.push_back(ProjectorOf(*edge, carries));
    any = any || (projects ? parts.back().runs_backward() : carries);
  }
  return any;
}

}  // namespace

std::vector<StagePart> StageParts(const Config& config, const std::string& module, int pp) {
  const ModuleConfig& own = FindModule(config, module);
  std::vector<StagePart> parts;
  const bool input_gradient =
      pp == 0 ? AddSources(config, module, parts) : HopCarriesGradient(config, module, pp - 1);
  const StagePart layers = LayersOf(own, pp, input_gradient);
  parts.push_back(layers);
  if (pp + 1 < own.num_stages()) return parts;
  for (const EdgeConfig* edge : OutgoingEdges(config, module)) {
    if (!ProjectsAt(*edge, ProjectorEnd::kFrom)) continue;
    parts.push_back(ProjectorOf(*edge, layers.runs_backward()));
  }
  return parts;
}

}  // namespace troupe
