// How long the thread that did a piece of work was on a core, and how long it wanted one, and where
// its record holds that.
#pragma once

#include <cstdint>

#include "trace/record.hpp"

namespace troupe {

/// As the kernel counts it for one thread. What is left of a piece's time the thread slept: it
/// waited for other ranks in a collective, for bytes, or for a disk.
struct CoreTime {
  static constexpr std::int64_t kUnknown = -1;

  std::int64_t on_core_ns = kUnknown;
  std::int64_t without_core_ns = kUnknown;  ///< ready to run, while others had the cores

  bool known() const { return on_core_ns >= 0; }

  friend bool operator==(const CoreTime&, const CoreTime&) = default;
};

/// Writes it into a record of work.
void SetCoreTime(TraceRecord& record, const CoreTime& time);

/// What a record of work holds.
CoreTime CoreTimeOf(const TraceRecord& record);

}  // namespace troupe
