// What a process asks of its Tracer, and what Tracers tell the one that writes the file.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/wire.hpp"
#include "trace/pass_record.hpp"

namespace troupe {

inline auto Fields(PassRecord& x) {
  return std::tie(x.unit, x.round, x.begin_ns, x.end_ns, x.stage, x.dp, x.rank, x.kind);
}

/// Move what the rings hold into the trace file (the Tracer tells itself, now and then).
struct DrainRings {};
inline auto Fields(DrainRings&) { return std::tie(); }

/// From the Tracer of another process: what its rings held, on this process's clock.
struct TraceRecords {
  std::vector<PassRecord> records;
  std::uint64_t dropped = 0;
};
inline auto Fields(TraceRecords& x) { return std::tie(x.records, x.dropped); }

/// Drain once more and close the file.
struct CloseTrace {};
inline auto Fields(CloseTrace&) { return std::tie(); }
struct TraceClosed {
  std::string error;  ///< empty, or why the file is not complete
  std::int64_t records = 0;
  std::uint64_t dropped = 0;  ///< overwritten in a ring before they were drained
};
inline auto Fields(TraceClosed& x) { return std::tie(x.error, x.records, x.dropped); }

using Tracer = caf::typed_actor<caf::reacts_to<DrainRings>, caf::reacts_to<TraceRecords>,
                                caf::replies_to<CloseTrace>::with<TraceClosed>>;

}  // namespace troupe
