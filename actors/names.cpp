#include "actors/names.hpp"

namespace troupe {

std::string SourceLeaderName(const std::string& edge, int shard) {
  return "leader " + edge + "/source." + std::to_string(shard);
}

std::string DestinationLeaderName(const std::string& edge, int shard) {
  return "leader " + edge + "/destination." + std::to_string(shard);
}

std::string PhaseName(const std::string& edge) { return "phase " + edge; }

std::string LockStepName(int set) { return "lock step " + std::to_string(set); }

std::string LockStepName(const std::string& stage) { return "lock step of " + stage; }

std::string RoundName(const Round& round) {
  return round.train ? "step " + std::to_string(round.step + 1)
                     : "evaluation after step " + std::to_string(round.step);
}

std::string WrongRound(const std::string& who, std::int64_t expected, const Round& got) {
  return who + ": expected round " + std::to_string(expected) + " from " + kDirectorName +
         ", got " + std::to_string(got.number);
}

}  // namespace troupe
