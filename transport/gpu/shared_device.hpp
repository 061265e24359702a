// Collectives of ranks in one process that share one device: copies and sums on the device, each
// rank's part on its own stream.
#pragma once

#include <memory>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// Every member calls this on its own thread. All members are in this process, and their streams
/// are of one device. Results are bitwise those of MakeLocalGroup, for memory of the device and of
/// the host.
///
/// Members meet on the host while they queue, twice per call; events order their streams. So no
/// thread waits for the device, and a returned call is complete on the member's stream, not on the
/// host.
///
/// A call takes device memory on all members or host memory on all members; otherwise it throws
/// std::logic_error on all of them. A device failure raises the signal. Throws
/// std::invalid_argument for more than gpu::Operands::kMost members; Aborted.
std::unique_ptr<Communicator> JoinSharedDevice(DeviceMember member);

}  // namespace troupe
