// What a piece of work of a device says about memory, and where in its record that lies.
#pragma once

#include <cstdint>

#include "trace/record.hpp"

namespace troupe {

/// Of the memory that a rank computes in, when a piece of its work ended. 0: not known.
struct WorkMemory {
  static constexpr int kOfProcess = -1;

  std::int64_t in_use_bytes = 0;
  std::int64_t reserved_bytes = 0;  ///< in use, or kept by the process for reuse
  std::int64_t peak_bytes = 0;      ///< most in use since the process began
  /// The GPU whose it is, as its process counts, shared by all ranks on it; kOfProcess: the
  /// process's own.
  int gpu = kOfProcess;

  bool on_gpu() const { return gpu != kOfProcess; }
  /// Something is said. What is in use may be 0, of a GPU that keeps memory for reuse only.
  bool known() const { return in_use_bytes > 0 || reserved_bytes > 0 || peak_bytes > 0; }

  friend bool operator==(const WorkMemory&, const WorkMemory&) = default;
};

/// Writes it into a record of work, in KiB: rounded down, and not more than 4 TiB.
void SetMemory(TraceRecord& record, const WorkMemory& memory);

/// What a record of work says.
WorkMemory MemoryOf(const TraceRecord& record);

}  // namespace troupe
