// Out of what everybody waits for, whom it all hangs on.
#pragma once

#include <string>
#include <vector>

#include "transport/wait.hpp"

namespace troupe {

/// The wait that explains the others, in words; of several of one kind, the first:
///   - an answer that is not owed by the one it is expected from: a message between them is lost;
///   - a wait for something that is no actor's to give;
///   - a wait for somebody who waits for nobody;
///   - any. "nobody says what for" if there is none.
/// Actors that are busy are taken to owe anything; so are those that `actors` does not speak of.
std::string RootOf(const std::vector<ActorWaits>& actors);

/// Whether all of them wait for and owe the same as before, in whatever order they are told.
bool SameWaits(const std::vector<ActorWaits>& before, const std::vector<ActorWaits>& after);

}  // namespace troupe
