// The memory of a world. Its addresses depend only on what was allocated in it, so that code that orders
// anything by addresses does the same again.
#pragma once

#include <cstddef>

namespace troupe::testing {

/// From now on malloc() and its relatives take memory that nothing has used before.
void UseFreshMemory();

/// From now on this thread releases nothing: it ends, and another one runs.
void LeaveMemory();

inline constexpr std::size_t kStackBytes = std::size_t{512} << 10;
/// Returns the memory for the stack of a thread.
void* TakeStack();
/// Takes it back when the thread has ended and was joined. Fresh memory costs most of the time of a start.
void GiveStack(void* stack);

}  // namespace troupe::testing
