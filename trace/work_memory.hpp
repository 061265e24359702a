// The memory values of a device's work, and their places in its record.
#pragma once

#include <cstdint>

#include "trace/record.hpp"

namespace troupe {

/// The memory that a rank computes in, at the end of a piece of work. 0: unknown.
struct WorkMemory {
  static constexpr int kOfProcess = -1;

  std::int64_t in_use_bytes = 0;
  std::int64_t reserved_bytes = 0;  ///< in use, or kept by the process for reuse
  std::int64_t peak_bytes = 0;      ///< most in use since the process began
      /// The GPU, as its process counts, shared by all ranks on it; kOfProcess: the process's
      /// memory.
  int gpu = kOfProcess;

  bool on_gpu() const { return gpu != kOfProcess; }
  /// in_use_bytes may be 0 on a GPU that only keeps memory for reuse.
  bool known() const { return in_use_bytes > 0 || reserved_bytes > 0 || peak_bytes > 0; }

  friend bool operator==(const WorkMemory&, const WorkMemory&) = default;
};

/// Writes it into a record of work, in KiB: rounded down, at most 4 TiB.
void SetMemory(TraceRecord& record, const WorkMemory& memory);

/// Reads it from a record of work.
WorkMemory MemoryOf(const TraceRecord& record);

}  // namespace troupe
