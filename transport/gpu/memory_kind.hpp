// Locates the memory of a call: collectives of ranks on devices accept host and device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/communicator.hpp"

namespace troupe {

enum class MemoryKind : std::uint8_t {
  kNone,    ///< there are no bytes
  kHost,    ///< pageable or pinned
  kDevice,  ///< memory of the member's own device
  kMixed    ///< unusable: see MemoryOf::error
};

/// The memory of one member's call.
struct MemoryOf {
  MemoryKind kind = MemoryKind::kNone;
  std::string error;  ///< of kMixed
};

/// Locates the `num_bytes` at `data`, as seen from `device`. Throws CudaError.
MemoryOf LocateMemory(const void* data, std::size_t num_bytes, int device);
/// For a call that reads one range and writes another.
MemoryOf LocateMemory(const void* input, std::size_t input_bytes, const void* output,
                      std::size_t output_bytes, int device);

}  // namespace troupe
