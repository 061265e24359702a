// The collectives of ranks on devices: chosen once, when the members come together, and said in one
// line.
//
//   one device, one process        copies on it (shared_device.hpp)
//   a device for each rank         a library between devices: NCCL, where it is built in
//   else                           through pinned memory (staged_communicator.hpp): NCCL refuses
//                                  ranks that share a device
#pragma once

#include <memory>
#include <string>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// A library of collectives between devices. One per process; must outlive what it makes.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  virtual std::string name() const = 0;  ///< "NCCL 2.28.9"
  /// Called by every member of a group on its own thread, one group after the other in one order
  /// that is the same in the whole job. Throws std::runtime_error in the library's words, Aborted.
  virtual std::unique_ptr<Communicator> Join(DeviceMember member) = 0;
};

struct DeviceGroup {
  std::unique_ptr<Communicator> communicator;
  /// For the log, the same on all members: "tensor group of vision: NCCL 2.28.9 over ranks 0-3".
  std::string description;
};

/// Called by every member on its own thread, one group after the other in one order that is the
/// same in the whole job. `library` is null where none is built in. Throws Aborted when a member
/// does not come within `member.patience`, which raises the signal with its name.
DeviceGroup MakeDeviceGroup(DeviceMember member, DeviceCollectives* library);

}  // namespace troupe
