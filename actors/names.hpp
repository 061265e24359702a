// Texts about rounds, for errors of actors.
#pragma once

#include <cstdint>
#include <string>

#include "modules/stage_program.hpp"
#include "trace/actor_id.hpp"

namespace troupe {

inline const std::string kDirectorName = ToString(DirectorActor());

/// "step 4", "evaluation after step 3".
std::string RoundName(const Round& round);
/// The error of `actor` about a round that is not the next one.
std::string WrongRound(const std::string& actor, std::int64_t expected, const Round& got);

}  // namespace troupe
