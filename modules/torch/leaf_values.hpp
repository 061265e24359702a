#pragma once

#include <torch/types.h>

namespace troupe {

/// The values of a leaf, for nodes of the library. What comes back is added to the leaf's .grad,
/// which must be preset when it trains and may be of a longer type, as those nodes could not.
at::Tensor LeafValues(const at::Tensor& leaf);

}  // namespace troupe
