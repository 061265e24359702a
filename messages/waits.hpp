// Asking an actor what it waits for and what it owes, when nothing moves any more.
#pragma once

#include <tuple>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/wire.hpp"
#include "transport/wait.hpp"

namespace troupe {

inline auto Fields(Wait& x) {
  return std::tie(x.what, x.unit, x.number, x.whom, x.asked, x.answer);
}
inline auto Fields(Owed& x) { return std::tie(x.what, x.number, x.to); }
inline auto Fields(ActorWaits& x) { return std::tie(x.who, x.node, x.busy, x.waits, x.owes); }

struct ReportWaits {};
inline auto Fields(ReportWaits&) { return std::tie(); }

/// An actor's answer speaks of itself, a Node's of all actors of its process.
struct Waits {
  std::vector<ActorWaits> actors;
};
inline auto Fields(Waits& x) { return std::tie(x.actors); }

using Waiting = caf::typed_actor<caf::replies_to<ReportWaits>::with<Waits>>;

}  // namespace troupe
