// The layouts whose gradients are compared with those of the unsharded reference.
#pragma once

#include <vector>

#include "tests/parity/setup.hpp"

namespace troupe {

/// All of them, on at most 8 ranks each.
std::vector<Setup> Matrix();

}  // namespace troupe
