// How much memory a shard will need, from the configuration alone.
#pragma once

#include <cstddef>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Bytes on one rank of a stage: the one that holds most.
struct StageMemory {
  std::size_t parameters = 0;   ///< as they are kept: what a checkpoint holds
  std::size_t rounded = 0;      ///< with bfloat16, their copies that multiply
  std::size_t gradients = 0;    ///< of what trains, in the type of the parameters
  std::size_t optimizer = 0;    ///< both Adam moments of what trains
  std::size_t offloaded = 0;    ///< of these four, what leaves the device for a while
  std::size_t activations = 0;  ///< kept per microbatch in flight; an estimate, see the source
  std::size_t state() const { return parameters + rounded + gradients + optimizer; }
};

/// What keeps the weights of attention [heads, length, length] until the backward.
enum class AttentionKeeps {
  kWeights,  ///< unless the module computes them again (Recompute)
  kNothing   ///< one kernel that keeps sums of rows instead, wherever it is used
};

/// Parameters, gradients and optimizer state are exact. Activations are those of the parts that run
/// a backward (modules/stage_parts.hpp), with full samples and one image per sample and encoder:
/// where an encoder is frozen and its projector trains, the projector's only. `attention`: of stages that compute with the library's operations,
/// as those on GPUs and those in bfloat16 do; all others keep weights. On a GPU there always is
/// such a kernel.
StageMemory EstimateMemory(const Config& config, const std::string& module, int pp,
                           AttentionKeeps attention = AttentionKeeps::kWeights);

}  // namespace troupe
