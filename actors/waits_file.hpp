// What everybody waits for, as a file beside the traces: what a trace cannot know, because a wait
// is something that has not happened.
#pragma once

#include <string>
#include <vector>

#include "transport/wait.hpp"

namespace troupe {

inline constexpr const char* kWaitsFile = "waits.json";  ///< in the folder of the traces

/// One JSON array, with the members of ActorWaits, Wait and Owed by their names.
std::string ToJson(const std::vector<ActorWaits>& actors);

/// Replaces FOLDER/waits.json. Throws std::runtime_error naming path and reason.
void WriteWaits(const std::string& folder, const std::vector<ActorWaits>& actors);

}  // namespace troupe
