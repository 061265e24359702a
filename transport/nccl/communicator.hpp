// The collectives of a group over a link that is connected.
#pragma once

#include <memory>

#include "transport/gpu/device_member.hpp"
#include "transport/nccl/link.hpp"

namespace troupe {

/// As Nccl::Join says.
std::unique_ptr<Communicator> MakeNcclCommunicator(DeviceMember member,
                                                   std::shared_ptr<NcclLink> link);

}  // namespace troupe
