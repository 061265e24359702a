// The wait lists of one process: its Node returns the answers that its actors wait for and owe.
#pragma once

#include <tuple>
#include <vector>

#include "messages/wire.hpp"
#include "transport/wait.hpp"

namespace troupe {

inline auto Fields(ActorKey& x) { return std::tie(x.process, x.actor); }
inline auto Fields(Wait& x) {
  return std::tie(x.what, x.unit, x.number, x.whom, x.request, x.message, x.on_its_way, x.key);
}
inline auto Fields(Owed& x) { return std::tie(x.to, x.request, x.key); }
inline auto Fields(ActorWaits& x) {
  return std::tie(x.who, x.node, x.busy, x.waits, x.owes, x.key);
}

struct ReportWaits {};
inline auto Fields(ReportWaits&) { return std::tie(); }

struct Waits {
  std::vector<ActorWaits> actors;
};
inline auto Fields(Waits& x) { return std::tie(x.actors); }

}  // namespace troupe
