#include "plan/optimizer_settings.hpp"

#include <algorithm>
#include <numeric>

#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

void Override(const OptimizerOverride& own, OptimizerSettings& settings) {
  settings.learning_rate = own.learning_rate.value_or(settings.learning_rate);
  settings.min_learning_rate = own.min_learning_rate.value_or(settings.min_learning_rate);
  settings.weight_decay = own.weight_decay.value_or(settings.weight_decay);
}

}  // namespace

OptimizerSettings SettingsOf(const Config& config, const std::string& part) {
  const OptimizerConfig& all = config.optimizer;
  OptimizerSettings settings{all.learning_rate, all.min_learning_rate, all.weight_decay};
  const auto edge = std::ranges::find_if(config.edges, [&part](const EdgeConfig& each) {
    return each.through && ProjectorName(each) == part;
  });
  if (edge == config.edges.end()) {
    Override(FindModule(config, part).optimizer, settings);
    return settings;
  }
  const bool at_source = edge->through->on == ProjectorEnd::kFrom;
  Override(FindModule(config, at_source ? edge->from : edge->to).optimizer, settings);
  Override(edge->through->optimizer, settings);
  return settings;
}

StateShardings ShardingsOf(const Config& config, const ModuleConfig& module) {
  const int holders = module.layout.num_holders();
  const int expert_holders = module.layout.expert_holders();
  const OptimizerConfig& all = config.optimizer;
  const bool shards = module.optimizer.shard.value_or(all.shard) == OptimizerShard::kData;
  if (!shards || !module.model->computes()) return {{1, holders}, {1, expert_holders}};
  const auto instances = static_cast<int>(module.optimizer.instances.value_or(all.instances));
  const int expert_instances = std::gcd(instances, expert_holders);
  return {{holders / instances, instances}, {expert_holders / expert_instances, expert_instances}};
}

double WeightDecayOf(const Config& config, const ParameterSpec& spec) {
  if (spec.traits.Meets(config.optimizer.no_decay)) return 0.0;
  return SettingsOf(config, spec.part).weight_decay;
}

std::vector<std::string> TrainedParts(const Config& config) {
  std::vector<std::string> parts;
  for (const ModuleConfig& module : config.modules) {
    if (module.model->computes() && !module.frozen) parts.push_back(module.name);
  }
  for (const EdgeConfig& edge : config.edges) {
    if (edge.through && !edge.through->frozen) parts.push_back(ProjectorName(edge));
  }
  return parts;
}

}  // namespace troupe
