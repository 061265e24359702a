// Copies in stream order.
#pragma once

#include <cstddef>

namespace troupe::gpu {

class Stream;

enum class Way { kToHost, kToDevice, kOnDevice };

/// Queues a copy of `num_bytes` on `stream`; no-op for 0. Only pinned host memory lets a copy
/// overlap with other work. Throws CudaError.
void Copy(const Stream& stream, void* to, const void* from, std::size_t num_bytes, Way way);

/// Copies between two devices. If they cannot access each other's memory, the driver copies through
/// the host. `from` must not belong to a memory pool of another device.
void CopyFromDevice(const Stream& stream, void* to, const void* from, int from_device,
                    std::size_t num_bytes);

}  // namespace troupe::gpu
