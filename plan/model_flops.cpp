#include "plan/model_flops.hpp"

#include <map>

#include "plan/stage_work.hpp"

namespace troupe {
namespace {

PassFlops FlopsOf(const Config& config, const StagePart& part, const StepShape& shape) {
  FlopCounter count(part.weight_gradient(), part.asks_input_gradient());
  ListWork(config, part, shape, count);
  return count.flops();
}

std::string NameOf(const StagePart& part) {
  return part.edge ? ProjectorName(*part.edge) : part.module->name;
}

}  // namespace

PassFlops StageFlops(const Config& config, const std::string& module, int pp,
                     const StepShape& shape) {
  PassFlops flops;
  if (!FindModule(config, module).model->computes()) return flops;
  for (const StagePart& part : StageParts(config, module, pp)) {
    flops += FlopsOf(config, part, shape);
  }
  return flops;
}

std::vector<PartFlops> StepFlops(const Config& config, const StepShape& shape) {
  std::map<std::string, PassFlops> by_name;
  for (const ModuleConfig& module : config.modules) {
    if (!module.model->computes() || module.inline_in) continue;
    for (int pp = 0; pp < module.num_stages(); ++pp) {
      for (const StagePart& part : StageParts(config, module.name, pp)) {
        by_name[NameOf(part)] += FlopsOf(config, part, shape);
      }
    }
  }
  std::vector<PartFlops> parts;
  const auto add = [&](const std::string& name) {
    if (by_name.contains(name)) parts.push_back({name, by_name.at(name)});
  };
  for (const ModuleConfig& module : config.modules) add(module.name);
  for (const EdgeConfig& edge : config.edges) add(ProjectorName(edge));
  return parts;
}

double TotalFlops(const std::vector<PartFlops>& parts) {
  double total = 0.0;
  for (const PartFlops& part : parts) total += part.flops.total();
  return total;
}

}  // namespace troupe
