// The memory of a world. Its addresses depend only on what was allocated in it, so that code that orders
// anything by addresses does the same again.
#pragma once

#include <cstddef>

namespace troupe::testing {

/// From now on malloc() and its relatives take memory that nothing has used before.
void UseFreshMemory();

/// From now on this thread releases nothing: it ends, and another one runs.
void LeaveMemory();

/// Returns memory for the stack of a thread.
void* NewStack(std::size_t num_bytes);

}  // namespace troupe::testing
