// Fills values that follow from others, after all written values are read.
#pragma once

#include "configs/config.hpp"
#include "configs/report.hpp"
#include "configs/schema.hpp"

namespace troupe {

/// Fills unset keys of modules as KeySpec::otherwise describes, and the input of the only encoder.
void FillDefaults(Config& config, const Report& report);

/// Sets the microbatches from `inputs.global_batch`. Reports a batch that is not a multiple of a
/// microbatch, with the nearest that are, and one that contradicts `microbatches`.
void SettleBatch(Config& config, const ShapingInputs& inputs, Report& report);

}  // namespace troupe
