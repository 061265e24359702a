#include <map>
#include <utility>

#include "layout/at.hpp"
#include "trace/merge_parts.hpp"

namespace troupe {
namespace {

/// The link between two stages.
using Hops = std::map<std::pair<int, int>, int>;

/// The link of a leader or a phase; -1: the trace does not have it.
int LinkOf(const RunTrace& trace, const ActorId& id) {
  const bool at_boundary = id.kind == ActorKind::kLeader || id.kind == ActorKind::kPhase;
  return at_boundary && id.link < std::ssize(trace.links) ? id.link : -1;
}

int LinkBetween(const RunTrace& trace, const Hops& hops, const ActorId& from, const ActorId& to) {
  for (const ActorId* id : {&to, &from}) {
    if (const int link = LinkOf(trace, *id); link >= 0) return link;
  }
  if (from.kind != ActorKind::kStage || to.kind != ActorKind::kStage) return -1;
  for (const auto& pair : {std::pair(from.stage, to.stage), std::pair(to.stage, from.stage)}) {
    const auto found = hops.find(pair);
    if (found != hops.end()) return found->second;
  }
  return -1;
}

}  // namespace

void SetLinks(RunTrace& trace) {
  Hops hops;
  for (std::size_t l = 0; l < trace.links.size(); ++l) {
    hops.emplace(std::pair(trace.links[l].from, trace.links[l].to), static_cast<int>(l));
  }
  std::map<std::pair<int, int>, int> known;
  for (TraceMessage& message : trace.messages) {
    if (message.sender < 0 || message.receiver < 0) continue;
    const auto [at, added] = known.emplace(std::pair(message.sender, message.receiver), -1);
    if (added) {
      at->second = LinkBetween(trace, hops, trace.actors[At(message.sender)].id,
                               trace.actors[At(message.receiver)].id);
    }
    message.link = at->second;
  }
}

}  // namespace troupe
