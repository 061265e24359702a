// Asking an actor what it waits for and what it owes, when nothing moves any more.
#pragma once

#include <tuple>
#include <type_traits>
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

using ReportsWaits = caf::replies_to<ReportWaits>::with<Waits>;
using Waiting = caf::typed_actor<ReportsWaits>;

/// Whether an actor can be asked. (CAF's handles claim to be convertible into each other.)
template <class Handle>
inline constexpr bool kCanReportWaits = false;
template <class... Signatures>
inline constexpr bool kCanReportWaits<caf::typed_actor<Signatures...>> =
    (std::is_same_v<Signatures, ReportsWaits> || ...);

}  // namespace troupe
