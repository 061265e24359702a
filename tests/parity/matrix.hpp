// The layouts whose gradients are compared with those of the unsharded reference.
#pragma once

#include <vector>

#include "tests/parity/setup.hpp"

namespace troupe {

using Setups = std::vector<Setup>;

// matrix_axes.cpp: rows cut over tp or not, samples cut over cp, packs, divided optimizer states.
Setups WithoutSequenceParallel();
Setups WithContextParallel();
Setups WithPacks();
Setups WithShardedStates();
// matrix_experts.cpp
Setups WithExperts();

/// All of them, on at most 8 ranks each.
Setups Matrix();

}  // namespace troupe
