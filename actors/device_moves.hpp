// The part of a device that moves state from it and back while it goes on with its commands.
//   receives  OffloadState, RestoreState   begins the copies
//             StateMoved                   from the copies, when they have run: answers the command
//
// The copies report on a thread of their own, so that word comes as a message. In virtual time they
// take as long as is stated, one after the other, beside the device's other work.
#pragma once

#include <caf/result.hpp>

#include "actors/device_actor.hpp"

namespace troupe {

caf::result<StateOffloaded> BeginOffload(DevicePointer self, const OffloadState& offload);
caf::result<StateRestored> BeginRestore(DevicePointer self, const RestoreState& restore);
void EndMove(DeviceState& state, const StateMoved& moved);

}  // namespace troupe
