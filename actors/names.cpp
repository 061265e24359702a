#include "actors/names.hpp"

namespace troupe {

static std::string LeaderName(EdgeEnd end, const std::string& edge, int shard) {
  return ToString(ActorId{.kind = ActorKind::kLeader, .end = end, .replica = shard, .of = edge});
}

std::string SourceLeaderName(const std::string& edge, int shard) {
  return LeaderName(EdgeEnd::kSource, edge, shard);
}

std::string DestinationLeaderName(const std::string& edge, int shard) {
  return LeaderName(EdgeEnd::kDestination, edge, shard);
}

std::string PhaseName(const std::string& edge) {
  return ToString(ActorId{.kind = ActorKind::kPhase, .of = edge});
}

std::string RoundName(const Round& round) {
  return round.train ? "step " + std::to_string(round.step + 1)
                     : "evaluation after step " + std::to_string(round.step);
}

std::string WrongRound(const std::string& who, std::int64_t expected, const Round& got) {
  return who + ": expected round " + std::to_string(expected) + " from " + kDirectorName +
         ", got " + std::to_string(got.number);
}

}  // namespace troupe
