// Copies in the order of a stream, as a whole or in pieces that are told one by one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace troupe::gpu {

class Stream;

enum class Way { kToHost, kToDevice, kOnDevice };

/// Copies `num_bytes`, queued on `stream`; nothing for none. Memory of the host must be pinned to
/// overlap with anything. Throws CudaError.
void Copy(const Stream& stream, void* to, const void* from, std::size_t num_bytes, Way way);

/// The same between two devices, whether or not they can read each other's memory: where they cannot,
/// the driver goes over the host. `from` is not of a MemoryPool of another device.
void CopyFromDevice(const Stream& stream, void* to, const void* from, int from_device,
                    std::size_t num_bytes);

/// Bytes [begin, end) of a copy are there, or the device has failed with `error`. Called as
/// Stream::OnOutcome calls.
using PieceCopied =
    std::function<void(std::size_t begin, std::size_t end, const std::string& error)>;

/// The same in pieces of at most `piece_bytes`, so that whoever takes them on can begin with the
/// first while the next is copied. Throws CudaError for a device that has failed: pieces that were
/// queued before are told, later ones are not.
void CopyInPieces(const Stream& stream, void* to, const void* from, std::size_t num_bytes, Way way,
                  std::size_t piece_bytes, const PieceCopied& copied);

}  // namespace troupe::gpu
