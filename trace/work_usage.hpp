// The time on cores and the memory of a piece of work, and their places in its record.
#pragma once

#include <cstdint>

#include "trace/record.hpp"

namespace troupe {

/// As the kernel counts it for one thread. For the rest of the work's duration the thread slept:
/// it waited for other ranks in a collective, for bytes, or for a disk.
struct CoreTime {
  static constexpr std::int64_t kUnknown = -1;

  std::int64_t on_core_ns = kUnknown;
  std::int64_t without_core_ns = kUnknown;  ///< ready to run, while others had the cores

  bool known() const { return on_core_ns >= 0; }

  friend bool operator==(const CoreTime&, const CoreTime&) = default;
};

/// The memory that a rank computes in, at the end of a piece of work. 0: unknown.
struct WorkMemory {
  static constexpr int kOfProcess = -1;

  std::int64_t in_use_bytes = 0;
  std::int64_t reserved_bytes = 0;  ///< in use, or kept by the process for reuse
  std::int64_t peak_bytes = 0;      ///< most in use since the process began
  /// The GPU, as its process counts, shared by all ranks on it; kOfProcess: the process's memory.
  int gpu = kOfProcess;

  bool on_gpu() const { return gpu != kOfProcess; }
  /// in_use_bytes may be 0 on a GPU that only keeps memory for reuse.
  bool known() const { return in_use_bytes > 0 || reserved_bytes > 0 || peak_bytes > 0; }

  friend bool operator==(const WorkMemory&, const WorkMemory&) = default;
};

// Into and out of a record of work. Memory is rounded down to KiB, at most 4 TiB.
void SetCoreTime(TraceRecord& record, const CoreTime& time);
CoreTime CoreTimeOf(const TraceRecord& record);
void SetMemory(TraceRecord& record, const WorkMemory& memory);
WorkMemory MemoryOf(const TraceRecord& record);

}  // namespace troupe
