// Activation recomputation: a part of a forward keeps its input only and is computed again when its
// backward comes.
#pragma once

#include <functional>
#include <torch/types.h>

namespace troupe {

/// part(x). If `recompute`, nothing but x is kept of it. Then `part` must give the same bits every time, and call the
/// same collectives, which then run again in the backward. `weight` is any of the parameters that
/// `part` uses, one that trains if any does: it makes the backward come even where x needs no
/// gradient.
at::Tensor RunPart(bool recompute, const at::Tensor& x, const at::Tensor& weight,
                   std::function<at::Tensor(const at::Tensor&)> part);

}  // namespace troupe
