// Collectives of ranks in one process that share one device: copies and sums on it, each rank's
// part on its own stream.
#pragma once

#include <memory>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// Called by every member on its own thread; the members of one group only, all in this process
/// and with streams of one device. Results have the bits of MakeLocalGroup's, for memory of the
/// device as for memory of the host.
///
/// Members meet on the host while they queue, twice a call; what they queue waits for what others
/// had queued before, by events. So nobody waits for the device, and a call is complete on a
/// member's stream when it returns, not on the host.
///
/// A call takes memory of the device on all members, or of the host on all members; else it throws
/// std::logic_error on all of them. A device that fails raises the signal.
/// Throws std::invalid_argument for more than gpu::Operands::kMost members; Aborted.
std::unique_ptr<Communicator> JoinSharedDevice(DeviceMember member);

}  // namespace troupe
