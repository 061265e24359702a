// What the calls that allocate and release share: the registry that work is checked against.
#pragma once

#include <cstddef>

#include "tests/gpu/emulated/world.hpp"

namespace troupe::emulated {

/// Of memory that is no device's.
inline constexpr int kNoDevice = -1;

/// Counts `num_bytes` of `device` as used; false if it has not as many left.
bool Reserve(int device, std::size_t num_bytes);
/// Memory full of rubbish, in the registry.
std::byte* Make(Allocation allocation);
/// Marks as given back by its owner; false, and a fault, if that cannot be. `call` is who asks.
bool GiveBack(const void* data, Allocation::Kind kind, const char* call);
/// Gives up what is marked, when work on `device` before it is done.
void Bury(std::byte* data, int device);

}  // namespace troupe::emulated
