// Collectives of a device that run concurrently with the work of their member, on a separate stream.
#pragma once

#include <functional>
#include <memory>

#include "gpu/stream.hpp"
#include "transport/communicator.hpp"

namespace troupe {

/// Returns the stream on which the member's thread queues work now.
using CallerStream = std::function<const gpu::Stream&()>;

/// Wraps `inner`, whose collectives are queued on `own`, for StartedOperations: events order them
/// with the work of `caller`, and no thread waits for a device.
std::unique_ptr<Communicator> MakeSideCommunicator(std::unique_ptr<gpu::Stream> own,
                                                   std::unique_ptr<Communicator> inner,
                                                   CallerStream caller);

}  // namespace troupe
