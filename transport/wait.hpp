// What actors wait for and what they owe. The root of a stall follows from the lists of all actors
// (actors/wait_lists.hpp). Texts are for people; code matches a wait and a debt by request number.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Identifies an actor without its name, which only the actor's own process knows.
struct ActorKey {
  int process = -1;  ///< -1: none
  std::uint64_t actor = 0;

  auto operator<=>(const ActorKey&) const = default;
};

/// The unit that a request is for.
enum class WaitUnit : std::uint8_t { kNone, kMicrobatch, kWindow, kRound, kMicrobatchOfRound };
/// "microbatch"; "" for kNone.
const char* ToString(WaitUnit unit);

/// Something an actor waits for.
struct Wait {
  std::string what;  ///< "gradient"
  WaitUnit unit = WaitUnit::kNone;
  std::int64_t number = 0;    ///< of the unit
  std::string whom;           ///< the awaited actor, "stage vision.s0 dp1"; empty: no actor
  std::uint64_t request = 0;  ///< the request that `whom` must answer; 0: none was sent
  std::string message = {};   ///< "Activation": type of that request, or of the expected one
  bool on_its_way = false;    ///< `whom` has done its part: the bytes are in flight
  ActorKey key = {};          ///< identifies `whom`

  auto operator<=>(const Wait&) const = default;
};

/// A request that has arrived and is unanswered.
struct Owed {
  std::string to;             ///< its sender
  std::uint64_t request = 0;  ///< its number, counted by the sender
  ActorKey key = {};          ///< identifies `to`

  auto operator<=>(const Owed&) const = default;
};

struct ActorWaits {
  std::string who;
  std::string node;   ///< its process; empty: there is only one
  bool busy = false;  ///< in a handler: its waits and debts are unknown
  std::vector<Wait> waits;
  std::vector<Owed> owes;
  ActorKey key = {};  ///< identifies `who`
};

/// "the gradient of microbatch 3 from stage vision.s0 dp1".
std::string ToString(const Wait& wait);
/// The same without "the", for a missing item: "no gradient of microbatch 3 from ...".
std::string WithoutArticle(const Wait& wait);

}  // namespace troupe
