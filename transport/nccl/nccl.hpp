// Collectives between devices over NCCL, and the watch over them.
//
// A communicator is made without blocking, so that every wait for it has an end. NCCL's kernels
// wait on the device for ever when a peer is gone; so a thread asks all communicators every kLook
// how they are. The first that has an error raises the job's signal with group, member and NCCL's
// words; and when the signal is raised, by that or by anybody, all communicators are aborted: what
// they have queued ends, and streams go on.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "transport/gpu/device_group.hpp"

namespace troupe {

struct NcclError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class NcclLink;

/// One per process. Thread-safe.
class Nccl final : public DeviceCollectives {
 public:
  static constexpr std::chrono::milliseconds kLook{100};

  /// `abort` is the job's; not null.
  explicit Nccl(std::shared_ptr<AbortSignal> abort);
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl() override;

  std::string name() const override;  ///< "NCCL 2.28.9", as it is loaded
  /// Members on a device each. The first makes NCCL's id, which travels over member.host. Throws
  /// NcclError naming who could not and why, and on all members; Aborted when the signal is raised,
  /// as it is with "expected to be connected within 60 s" when patience ends.
  ///
  /// The communicator: sums are in NCCL's order, not in rank order, and the same on all members.
  /// Sizes that disagree between members, and memory of the host on one and of the device on the
  /// other, are not noticed: they hang until the job ends. Null pointers count as memory of the
  /// device. Illegal arguments raise the signal.
  std::unique_ptr<Communicator> Join(DeviceMember member) override;

 private:
  struct Watch;
  const std::shared_ptr<AbortSignal> abort_;
  const std::unique_ptr<Watch> watch_;
};

}  // namespace troupe
