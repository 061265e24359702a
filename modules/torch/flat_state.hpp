// What a shard keeps from pass to pass, as flat tensors.
#pragma once

#include <torch/types.h>

namespace troupe {

/// What a flat tensor is for, in the order in which it must be back.
enum class StateUse {
  kForward,   ///< parameters: every pass reads them, the update writes them
  kBackward,  ///< gradients: backwards and the update write them
  kUpdate,    ///< moments, and whatever else the update alone reads and writes
};

struct FlatState {
  at::Tensor tensor;  ///< one dimension, alone in its storage
  StateUse use = StateUse::kForward;
};

}  // namespace troupe
