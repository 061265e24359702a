// Collectives between devices over NCCL, and a watch over them.
//
// A communicator is made without blocking, so that every wait for it ends. NCCL's kernels wait on
// the device for ever when a peer is gone. So a thread queries all communicators every
// kPollInterval. The first error raises the job's signal with group, member and NCCL's error text.
// When the signal is raised, by this thread or elsewhere, all communicators are aborted: their
// queued work ends, and streams continue.
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
  static constexpr std::chrono::milliseconds kPollInterval{100};

  /// `abort` is the job's; not null.
  explicit Nccl(std::shared_ptr<AbortSignal> abort);
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl() override;

  std::string name() const override;  ///< the loaded version: "NCCL 2.28.9"
  /// For members on separate devices. The first member makes NCCL's id, which is sent over
  /// member.host. Throws NcclError on all members, naming the failed member and the reason; Aborted
  /// if the signal is raised, also by member.patience.
  ///
  /// The communicator sums in NCCL's order, not in rank order; results are the same on all members.
  /// It does not detect sizes that differ between members, or host memory on one and device memory
  /// on another: such calls hang until the job ends. Null pointers count as device memory. Illegal
  /// arguments raise the signal.
  std::unique_ptr<Communicator> Join(DeviceMember member) override;

 private:
  struct Watch;
  const std::shared_ptr<AbortSignal> abort_;
  const std::unique_ptr<Watch> watch_;
};

}  // namespace troupe
