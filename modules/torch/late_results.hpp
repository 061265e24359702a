// Facts about the results of a pass that are known only when the device has run it. Nothing here
// waits: the numbers are copied to the host after the pass, and a function for
// ForwardResult::finish reads them.
#pragma once

#include <functional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// Throws std::runtime_error when one of `outputs` is not finite ("output 1 is not finite: nan"),
/// or adds `late_loss` (see BodyResult; undefined: none) to the result's loss and throws when that
/// is not a number ("the loss is nan").
std::function<void(ForwardResult&)> FinishForward(const std::vector<at::Tensor>& outputs,
                                                  const at::Tensor& late_loss);

/// Throws the same for "gradient of input 1". Undefined ones are not looked at; empty when all are.
std::function<void(BackwardResult&)> FinishBackward(const std::vector<at::Tensor>& gradients);

}  // namespace troupe
