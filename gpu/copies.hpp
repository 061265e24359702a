// Copies in stream order, whole or in pieces with a callback each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace troupe::gpu {

class Stream;

enum class Way { kToHost, kToDevice, kOnDevice };

/// Queues a copy of `num_bytes` on `stream`; no-op for 0. Only pinned host memory lets a copy
/// overlap with other work. Throws CudaError.
void Copy(const Stream& stream, void* to, const void* from, std::size_t num_bytes, Way way);

/// Copies between two devices. If they cannot access each other's memory, the driver copies through
/// the host. `from` must not belong to a MemoryPool of another device.
void CopyFromDevice(const Stream& stream, void* to, const void* from, int from_device,
                    std::size_t num_bytes);

/// Called when bytes [begin, end) of a copy have arrived, or with `error` if the device has failed.
/// Same rules as Stream::OnOutcome.
using PieceCopied =
    std::function<void(std::size_t begin, std::size_t end, const std::string& error)>;

/// Copies in pieces of at most `piece_bytes`, so that a consumer can start with the first piece
/// while the next is copied. Throws CudaError if the device has failed: `copied` is then called
/// only for the pieces queued before.
void CopyInPieces(const Stream& stream, void* to, const void* from, std::size_t num_bytes, Way way,
                  std::size_t piece_bytes, const PieceCopied& copied);

}  // namespace troupe::gpu
