// What actors are called in texts and in waits: by JobPlan's ids, and by these where an actor does
// not know its id; transport/wait.hpp has devices.
#pragma once

#include <cstdint>
#include <string>

#include "modules/stage_program.hpp"
#include "trace/actor_id.hpp"

namespace troupe {

inline const std::string kDirectorName = ToString(DirectorActor());

std::string SourceLeaderName(const std::string& edge, int shard);  ///< "leader a>b/source.0"
std::string DestinationLeaderName(const std::string& edge, int shard);
std::string PhaseName(const std::string& edge);  ///< "phase vision>language"

// What is asked for, as waits and debts call it: both sides must say the same.
namespace asked {
inline constexpr const char* kForward = "forward";
inline constexpr const char* kBackward = "backward";
inline constexpr const char* kWeights = "weight gradients";
inline constexpr const char* kReduction = "gradient reduction";
inline constexpr const char* kExchange = "row exchange";
inline constexpr const char* kOffload = "offload of the encoder's state";
inline constexpr const char* kRestore = "restore of the encoder's state";
inline constexpr const char* kInspecting = "look at the tensors";
inline constexpr const char* kSaving = "saving";
inline constexpr const char* kLoading = "loading";
inline constexpr const char* kGradient = "gradient";
inline constexpr const char* kReport = "report";
inline constexpr const char* kTaking = "taking of the input";
inline constexpr const char* kNorm = "gradient norm";
inline constexpr const char* kUpdate = "parameter update";
}  // namespace asked

/// "step 4", "evaluation after step 3".
std::string RoundName(const Round& round);
/// What `who` reports of a round that is not the next one.
std::string WrongRound(const std::string& who, std::int64_t expected, const Round& got);

}  // namespace troupe
