// What a process asks of its Tracer.
#pragma once

#include <cstdint>
#include <string>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/local.hpp"

namespace troupe {

/// Move what the rings hold into the trace file (the Tracer tells itself, now and then).
struct DrainRings {};

/// Drain once more and close the file.
struct CloseTrace {};
struct TraceClosed {
  std::string error;  ///< empty, or why the file is not complete
  std::int64_t records = 0;
  std::uint64_t dropped = 0;  ///< overwritten in a ring before they were drained
};

using Tracer =
    caf::typed_actor<caf::reacts_to<DrainRings>, caf::replies_to<CloseTrace>::with<TraceClosed>>;

}  // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::DrainRings)
TROUPE_LOCAL_MESSAGE(troupe::CloseTrace)
TROUPE_LOCAL_MESSAGE(troupe::TraceClosed)
