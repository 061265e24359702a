// The transit time of a tensor from one stage to the next.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/run_trace.hpp"

namespace troupe {

/// The median over replicas and microbatches of the time that an activation is in transit from
/// stage `from` to stage `to`, in ns. Empty if the trace has none.
///
/// At a boundary this is the transit to the sending leader, plus the transit from the last slice
/// that the receiving leader needs. The wait between, for credits and for slices of slower
/// replicas, is not a property of the link: a simulation adds such waits itself.
std::optional<std::int64_t> LinkTime(const RunTrace& trace, const StageId& from, const StageId& to);

}  // namespace troupe
