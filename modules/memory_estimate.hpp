// How much memory a shard will need, from the configuration alone.
#pragma once

#include <cstddef>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Bytes on one rank of a stage: the one that holds most.
struct StageMemory {
  std::size_t parameters = 0;
  std::size_t gradients = 0;    ///< of what trains
  std::size_t optimizer = 0;    ///< both Adam moments of what trains
  std::size_t offloaded = 0;    ///< of these three, what leaves the device for a while
  std::size_t activations = 0;  ///< kept per microbatch in flight; an estimate, see the source
  std::size_t state() const { return parameters + gradients + optimizer; }
};

/// Parameters, gradients and optimizer state are exact. Activations assume full samples and one
/// image per sample and encoder.
StageMemory EstimateMemory(const Config& config, const std::string& module, int pp);

}  // namespace troupe
