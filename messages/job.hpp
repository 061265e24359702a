// How a job starts and ends, seen from outside.
#pragma once

#include <string>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/local.hpp"

namespace troupe {

/// Run all rounds. Answered when the last one is complete and reported.
struct RunJob {};
struct JobDone {
  std::string failure;  ///< empty: every round is complete; else the first cause, one line
};

/// Somebody raised the abort signal.
struct JobFailed {
  std::string cause;
};

using Director =
    caf::typed_actor<caf::replies_to<RunJob>::with<JobDone>, caf::reacts_to<JobFailed>>;

/// The owner of all actors of a process: ends them when told.
using Node = caf::typed_actor<caf::replies_to<RunJob>::with<JobDone>>;

}  // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::RunJob)
TROUPE_LOCAL_MESSAGE(troupe::JobDone)
TROUPE_LOCAL_MESSAGE(troupe::JobFailed)
