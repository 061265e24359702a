// A rank's contribution to a group whose ranks compute on devices.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "gpu/stream.hpp"
#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// One member. Its collectives are queued on `stream` and complete in its order: work queued
/// afterwards may use their memory, and the host does not wait.
struct DeviceMember {
  /// A communicator of the same members in the same order. The members meet there, and collectives
  /// of host memory run over it; these block.
  std::unique_ptr<Communicator> host;
  const gpu::Stream* stream = nullptr;  ///< must outlive the communicator
  ProcessId process = 0;                ///< this process
  GroupNames names;                     ///< the names of `host`
  std::shared_ptr<AbortSignal> abort;   ///< the job's
  /// The time limit for all members to join; after that the job is aborted.
  std::chrono::milliseconds patience{60'000};
};

/// Raises the member's signal with "tensor group of vision: rank 2: ERROR", since the other members
/// wait for this one.
inline void RaiseFor(const DeviceMember& member, const std::string& error) {
  if (member.abort != nullptr) {
    member.abort->Raise(member.names.group + ": " + member.names.MemberName(member.host->rank()) +
                        ": " + error);
  }
}

}  // namespace troupe
