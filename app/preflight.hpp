// Checks of the machine before a run starts: libraries hang or abort if the system refuses them a
// thread or memory.
#pragma once

#include "configs/config.hpp"

namespace troupe {

/// Starts as many threads as `ranks` ranks and their helpers need, reserves the address space that
/// BLAS takes per thread, and releases both. Throws std::runtime_error if the system refuses one.
void CheckResources(int ranks);

/// Prints a warning to standard output if `ranks` ranks compute on fewer cores of this machine.
void WarnOfCores(const Config& config, int ranks);

/// Warns if checkpoint.replicas is set but has no effect in this job.
void WarnOfMirrors(const CheckpointConfig& config, int restarts, int processes);

}  // namespace troupe
