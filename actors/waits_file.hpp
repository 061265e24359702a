// The wait lists of all actors, as a file next to the traces. A trace cannot show them, because a
// wait is an event that has not happened.
#pragma once

#include <string>
#include <vector>

#include "transport/failure.hpp"
#include "transport/wait.hpp"

namespace troupe {

// Files in the folder of the traces.
inline constexpr const char* kWaitsFile = "waits.json";             ///< of a job that stood still
inline constexpr const char* kWaitsAskedFile = "waits-asked.json";  ///< of one that may be running

/// The cause of the job's end; absent after a success.
inline constexpr const char* kCauseFile = "cause.txt";
/// The text of the failure, then its actors, a line each.
std::string CauseText(const Failure& failure);

/// Replaces `path`. Throws std::runtime_error naming path and reason.
void WriteTextFile(const std::string& path, const std::string& text);

/// One JSON array, with the members of ActorWaits, Wait and Owed by their names, but no keys.
std::string ToJson(const std::vector<ActorWaits>& actors);

}  // namespace troupe
