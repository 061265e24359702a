// What a run needs of the machine, tried before it starts: libraries below us hang or abort where
// the system refuses them a thread or memory.
#pragma once

namespace troupe {

/// Starts as many threads as `ranks` ranks and their helpers need, and reserves the address space
/// that BLAS takes per thread, then gives both back. Throws std::runtime_error: what was refused.
void CheckResources(int ranks);

}  // namespace troupe
