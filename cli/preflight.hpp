// What a run needs of the machine, tried before it starts: libraries below us hang or abort where
// the system refuses them a thread or memory.
#pragma once

#include "configs/config.hpp"

namespace troupe {

/// Starts as many threads as `ranks` ranks and their helpers need, and reserves the address space
/// that BLAS takes per thread, then gives both back. Throws std::runtime_error: what was refused.
void CheckResources(int ranks);

/// A line to standard output when `ranks` ranks that compute on this machine's cores are more than
/// these: steps take longer than the layout makes them.
void WarnOfCores(const Config& config, int ranks);

}  // namespace troupe
