// Values that follow from others, once everything that was written is read.
#pragma once

#include "configs/config.hpp"
#include "configs/report.hpp"
#include "configs/schema.hpp"

namespace troupe {

/// What KeySpec::otherwise says of the keys of modules that nobody wrote, and the input of an
/// encoder that is the only one.
void FillDefaults(Config& config, const Report& report);

/// The microbatches of `inputs.global_batch`. Reports a batch that they cannot make up, with the
/// nearest that they can, and one that contradicts the microbatches written beside it.
void SettleBatch(Config& config, const ShapingInputs& inputs, Report& report);

}  // namespace troupe
