// Collectives of ranks that have no faster way between their devices: through pinned memory, over
// the group of the host.
#pragma once

#include <memory>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// Used by one member on its thread, without meeting the others. Every call waits until the
/// member's stream has come to it, and returns when the result is queued behind it. Memory of the
/// host goes straight to the group of the host; results are that group's.
/// A device that fails raises the signal.
std::unique_ptr<Communicator> MakeStagedCommunicator(DeviceMember member);

}  // namespace troupe
