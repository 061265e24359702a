// Why a job could not meet: the kind for code, the text for people.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

enum class JoinFault : std::uint8_t {
  kOther = 0,    ///< the text names both sides and their difference
  kRunKey,       ///< the two have different run keys
  kBuild,        ///< the two were built from different sources
  kListen,       ///< the system refused the address or port
  kAbsent,       ///< a process did not join in time
  kUnreachable,  ///< this process cannot connect to another
  kUnreached,    ///< another process has not connected to this one
  kLeft,         ///< a process ended while the job was meeting: it may meet again
  kEnded,        ///< the job does not go on, for another reason than the meeting
  kDone,         ///< there is nothing left to do
  kTaken,        ///< another process has this one's place, or the job goes on without it
  kWrongFirst,  ///< process 0 does not fit a job that goes on, and ends: the others wait for another
};
inline constexpr std::uint8_t kNumJoinFaults = 12;

/// Whether a process of a job that goes on meets again after this fault.
inline bool MeetsAgain(JoinFault fault) {
  return fault == JoinFault::kLeft || fault == JoinFault::kWrongFirst;
}

struct JoinProblem {
  std::string text;
  JoinFault fault = JoinFault::kOther;

  bool operator==(const JoinProblem&) const = default;
};

/// Refuses a process that comes after the job is done.
inline JoinProblem DoneProblem() { return {"the job is done", JoinFault::kDone}; }

}  // namespace troupe
