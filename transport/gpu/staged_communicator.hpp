// Collectives of ranks without a faster path between their devices: through pinned memory, over the
// group of the host.
#pragma once

#include <memory>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// Used by one member on its thread; creating it does not involve the others. Every call waits for
/// the work queued on the member's stream, and returns when the copy of the result is queued. Host
/// memory goes directly to the group of the host, which also determines the results. A device
/// failure raises the signal.
std::unique_ptr<Communicator> MakeStagedCommunicator(DeviceMember member);

}  // namespace troupe
