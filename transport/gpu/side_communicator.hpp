// Collectives of a device beside the work that asks for them: on a stream of their own.
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
