// The time that a piece of work spent on a core and waiting for one, and its place in a record.
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

/// Writes it into a record of work.
void SetCoreTime(TraceRecord& record, const CoreTime& time);

/// Reads it from a record of work.
CoreTime CoreTimeOf(const TraceRecord& record);

}  // namespace troupe
