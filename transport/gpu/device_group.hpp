// The collectives of ranks on devices: chosen once, when the members join, and described in one
// line.
//
//   one device, one process        copies on it (shared_device.hpp)
//   a separate device per rank     a library between devices: NCCL, if built in
//   else                           through pinned memory (staged_communicator.hpp): NCCL refuses
//                                  ranks that share a device
#pragma once

#include <memory>
#include <string>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// A library of collectives between devices. One per process; must outlive its communicators.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  virtual std::string name() const = 0;  ///< "NCCL 2.28.9"
  /// Every member of a group calls this on its own thread. The order of groups must be the same in
  /// the whole job. Throws std::runtime_error with the library's error text, Aborted.
  virtual std::unique_ptr<Communicator> Join(DeviceMember member) = 0;
};

struct DeviceGroup {
  std::unique_ptr<Communicator> communicator;
  /// For the log, the same on all members: "tensor group of vision: NCCL 2.28.9 over ranks 0-3".
  std::string description;
};

/// Every member calls this on its own thread. The order of groups must be the same in the whole
/// job. `library` is null if none is built in. If a member does not join within `member.patience`,
/// raises the signal with its name and throws Aborted.
DeviceGroup MakeDeviceGroup(DeviceMember member, DeviceCollectives* library);

}  // namespace troupe
