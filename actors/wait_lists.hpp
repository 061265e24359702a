// The wait lists of all actors: the root of a stall, and files next to the traces. A trace cannot
// show them, because a wait is an event that has not happened.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "transport/failure.hpp"
#include "transport/wait.hpp"

namespace troupe {

/// " (step 3 mb 7)" of a wait for a microbatch or a window, which waits count from the start of the
/// run; empty for others.
using PlaceText = std::function<std::string(const Wait& wait)>;

struct WaitRoot {
  std::string text;                 ///< one line
  std::vector<std::string> actors;  ///< names: the actor waited for, then the waiting one
  friend bool operator==(const WaitRoot&, const WaitRoot&) = default;
};

/// The wait that explains the others; of several of one kind, the first:
///   - for an answer that its actor does not owe: a message between the two is lost;
///   - for something that no actor sends, as bytes in transfer;
///   - for an actor that waits for no other;
///   - for an actor that is busy;
///   - any.
/// An actor that is busy, or not in `actors`, may owe anything. `place` may be empty.
WaitRoot RootOf(const std::vector<ActorWaits>& actors, const PlaceText& place = {});

/// Whether all actors wait for and owe the same as before, in any order.
bool SameWaits(const std::vector<ActorWaits>& before, const std::vector<ActorWaits>& after);

/// The waits of `after` that are in `before`, too; the others are those of a job that makes
/// progress. An actor counts as busy if it is missing in `before`, or waited and none of its waits
/// has lasted.
std::vector<ActorWaits> LastingWaits(const std::vector<ActorWaits>& before,
                                     const std::vector<ActorWaits>& after);

// Files in the folder of the traces.
inline constexpr const char* kWaitsFile = "waits.json";             ///< of a job that stood still
inline constexpr const char* kWaitsAskedFile = "waits-asked.json";  ///< of one that may be running
/// The waits in kWaitsAskedFile have lasted as long at least.
inline constexpr std::chrono::milliseconds kLastingWait{300};

/// The cause of the job's end; absent after a success.
inline constexpr const char* kCauseFile = "cause.txt";
/// The text of the failure, then its actors, a line each.
std::string CauseText(const Failure& failure);

/// One JSON array, with the members of ActorWaits, Wait and Owed by their names, but no keys.
std::string ToJson(const std::vector<ActorWaits>& actors);

}  // namespace troupe
