// How long a tensor takes from one stage to the next.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/run_trace.hpp"

namespace troupe {

/// The median over replicas and microbatches of the time that an activation is on its way from
/// stage `from` to stage `to`, in ns. Nothing: none is in the trace.
///
/// At a boundary that is the way to the leader that sends, and the way from the last slice that the
/// leader at the other end needs. What lies between, the wait for credits and for the slices of
/// slower replicas, is no property of the link: a simulation has waits of its own.
std::optional<std::int64_t> LinkTime(const RunTrace& trace, const StageId& from, const StageId& to);

}  // namespace troupe
