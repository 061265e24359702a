// What a rank brings along to a group whose ranks compute on devices.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "gpu/stream.hpp"
#include "transport/abort_signal.hpp"
#include "transport/communicator.hpp"
#include "transport/group_waits.hpp"

namespace troupe {

/// One member. Its collectives are queued on `stream` and complete in its order: memory of the
/// device is theirs to use from there on, and the host does not wait for it.
struct DeviceMember {
  /// Of the same members in the same order: where they meet, and what collectives of host memory
  /// run over, which block as ever.
  std::unique_ptr<Communicator> host;
  const gpu::Stream* stream = nullptr;  ///< must outlive the communicator
  ProcessId process = 0;                ///< this one, as the job counts
  GroupNames names;                     ///< as of `host`
  std::shared_ptr<AbortSignal> abort;   ///< the job's
  /// How long members may take to come together before the job is given up.
  std::chrono::milliseconds patience{60'000};
};

/// What this member could not do ends the job: the others wait for it. Raises its signal with
/// "tensor group of vision: rank 2: WHAT".
inline void RaiseFor(const DeviceMember& member, const std::string& what) {
  if (member.abort != nullptr)
    member.abort->Raise(member.names.group + ": " + member.names.MemberName(member.host->rank()) +
                        ": " + what);
}

}  // namespace troupe
