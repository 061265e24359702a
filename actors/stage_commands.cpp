#include "actors/stage_commands.hpp"

#include <utility>

namespace troupe {
namespace {

const Buffer& ShardOf(const std::vector<Buffer>& shards, std::size_t index) {
  return shards.size() == 1 ? shards.front() : shards.at(index);
}

}  // namespace

ToSet<RunForward> ForwardCommands(const StageConfig& config, std::int64_t round,
                                  const ForwardPass& pass,
                                  const std::vector<std::vector<Buffer>>& inputs) {
  ToSet<RunForward> set;
  for (std::size_t i = 0; i < config.ranks.size(); ++i) {
    RunForward run{config.stage, round, pass};
    for (const auto& shards : inputs) run.pass.inputs.push_back(ShardOf(shards, i));
    set.parts.emplace_back(config.ranks[i], std::move(run));
  }
  return set;
}

ToSet<RunBackward> BackwardCommands(const StageConfig& config, std::int64_t round,
                                    std::int64_t unit,
                                    const std::vector<std::vector<Buffer>>& gradients) {
  const bool split = config.rule.splits_backward;
  ToSet<RunBackward> set;
  for (std::size_t i = 0; i < config.ranks.size(); ++i) {
    RunBackward run{config.stage, round, {unit, {}, split}};
    for (const auto& shards : gradients) {
      run.pass.gradients.push_back(shards.empty() ? Buffer() : ShardOf(shards, i));
    }
    set.parts.emplace_back(config.ranks[i], std::move(run));
  }
  return set;
}

ToSet<RunBackwardWeights> WeightCommands(const StageConfig& config, std::int64_t round,
                                         std::int64_t unit) {
  ToSet<RunBackwardWeights> set;
  for (const int rank : config.ranks) {
    set.parts.emplace_back(rank, RunBackwardWeights{config.stage, round, unit});
  }
  return set;
}

}  // namespace troupe
