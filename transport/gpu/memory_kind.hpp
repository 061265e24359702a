// Where a pointer points to: collectives of ranks on devices take memory of either side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/communicator.hpp"

namespace troupe {

enum class MemoryKind : std::uint8_t {
  kNone,    ///< there are no bytes
  kHost,    ///< pageable or pinned
  kDevice,  ///< of the member's own device
  kMixed    ///< nothing that a call can work on: see MemoryOf::error
};

/// The memory of one member's call.
struct MemoryOf {
  MemoryKind kind = MemoryKind::kNone;
  std::string error;  ///< of kMixed: why
};

/// Where the `num_bytes` at `data` are, seen from `device`. Throws CudaError.
MemoryOf LocateMemory(const void* data, std::size_t num_bytes, int device);
/// Of a call that reads one place and writes another.
MemoryOf LocateMemory(const void* input, std::size_t input_bytes, const void* output,
                      std::size_t output_bytes, int device);

}  // namespace troupe
