// The collectives of a group over a connected link.
#pragma once

#include <memory>

#include "transport/gpu/device_member.hpp"
#include "transport/nccl/link.hpp"

namespace troupe {

/// The communicator documented at Nccl::Join.
std::unique_ptr<Communicator> MakeNcclCommunicator(DeviceMember member,
                                                   std::shared_ptr<NcclLink> link);

}  // namespace troupe
