// Estimates the memory that a shard will need, from the configuration alone.
#pragma once

#include <cstddef>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Bytes on one rank of a stage: on the rank that holds most.
struct StageMemory {
  std::size_t parameters = 0;   ///< as in a checkpoint
  std::size_t rounded = 0;      ///< with bfloat16: their rounded copies, which multiply
  std::size_t gradients = 0;    ///< of the parts that train, in the type of the parameters
  std::size_t optimizer = 0;    ///< both Adam moments of the parts that train
  std::size_t offloaded = 0;    ///< the part of these four that leaves the device for a while
  std::size_t activations = 0;  ///< kept per microbatch in flight; an estimate, see the source
  std::size_t state() const { return parameters + rounded + gradients + optimizer; }
};

/// Whether the weights of attention [heads, length, length] are kept until the backward.
enum class AttentionKeeps {
  kWeights,  ///< unless the module computes them again (Recompute)
  kNothing   ///< the fused kernel keeps sums of rows instead, wherever it is used
};

/// Parameters, gradients and optimizer state are exact. Activations are those of the parts that run
/// a backward (plan/stage_parts.hpp), with full samples and one image per sample and encoder. If an
/// encoder is frozen and its projector trains, only the projector's count. `attention` is for
/// stages that compute with the library's operations: those on GPUs and those in bfloat16. All
/// others keep weights. A GPU always has the fused kernel.
StageMemory EstimateMemory(const Config& config, const std::string& module, int pp,
                           AttentionKeeps attention = AttentionKeeps::kWeights);

}  // namespace troupe
