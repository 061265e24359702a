// The one place where a collective waits for a device: until a stream has come to where it is now.
#pragma once

#include <memory>
#include <string>

#include "gpu/stream.hpp"
#include "transport/abort_signal.hpp"

namespace troupe {

/// Sleeps until all that is queued on `stream` has run. Throws gpu::CudaError in the words of a
/// device that fails, Aborted when `abort` (which may be null) is raised meanwhile.
void AwaitStream(const gpu::Stream& stream, const std::shared_ptr<AbortSignal>& abort);

}  // namespace troupe
