// AdamW by our own kernel, in one pass over a GPU's memory.
#pragma once

#include "modules/torch/flat_optimizer.hpp"

namespace troupe {

/// Queued on the calling thread's current stream of the device that `run` is on, all of it
/// contiguous float32 (`rounded` bfloat16). Throws std::logic_error where libtorch knows no GPUs.
void ApplyAdamWOnDevice(const AdamWStep& step, const FlatRun& run);

}  // namespace troupe
