// Messages that start and end a job.
#pragma once

#include <tuple>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"
#include "messages/wire.hpp"

namespace troupe {

/// Run all rounds. Answered when the last one is complete and reported.
struct RunJob {};
inline auto Fields(RunJob&) { return std::tie(); }
struct JobDone {
  Failure failure;  ///< the first one; empty: every round is complete
};
inline auto Fields(JobDone& x) { return std::tie(x.failure); }

/// The abort signal has been raised.
struct JobFailed {
  Failure failure;
};
inline auto Fields(JobFailed& x) { return std::tie(x.failure); }

/// End the job early: complete the rounds that have begun, begin no more.
struct StopSoon {};
inline auto Fields(StopSoon&) { return std::tie(); }

using Director = caf::typed_actor<caf::replies_to<RunJob>::with<JobDone>, caf::reacts_to<JobFailed>,
                                  caf::reacts_to<StopSoon>>;

}  // namespace troupe
