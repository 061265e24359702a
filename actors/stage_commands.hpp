// One decision of a stage as what each of its devices runs. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/stage_actor.hpp"

namespace troupe {

/// `inputs` by incoming link, then shard; where there is one shard it is for all devices.
ToSet<RunForward> ForwardCommands(const StageConfig& config, std::int64_t round,
                                  const ForwardPass& pass,
                                  const std::vector<std::vector<Buffer>>& inputs);

/// `gradients` by outgoing link, then shard; no shards: that link brings no gradient.
ToSet<RunBackward> BackwardCommands(const StageConfig& config, std::int64_t round,
                                    std::int64_t unit,
                                    const std::vector<std::vector<Buffer>>& gradients);

ToSet<RunBackwardWeights> WeightCommands(const StageConfig& config, std::int64_t round,
                                         std::int64_t unit);

}  // namespace troupe
