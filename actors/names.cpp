#include "actors/names.hpp"

namespace troupe {

std::string RoundName(const Round& round) {
  return round.train ? "step " + std::to_string(round.step + 1)
                     : "evaluation after step " + std::to_string(round.step);
}

std::string WrongRound(const std::string& actor, std::int64_t expected, const Round& got) {
  return actor + ": expected round " + std::to_string(expected) + " from " + kDirectorName +
         ", got " + std::to_string(got.number);
}

}  // namespace troupe
