// What actors wait for and what they owe: the root of a stall follows from the lists of all of them
// (actors/wait_root.hpp). Words are for people; a wait and a debt match by the number of a request.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// An actor where its name is not known: only the process in which it lives knows that.
struct ActorKey {
  int process = -1;  ///< -1: none
  std::uint64_t actor = 0;

  auto operator<=>(const ActorKey&) const = default;
};

/// Something an actor waits for.
struct Wait {
  std::string what;           ///< "gradient"
  std::string unit;           ///< "microbatch", "round"; empty: it has no number
  std::int64_t number = 0;    ///< of the unit
  std::string whom;           ///< "stage vision.s0 dp1"; empty: no actor
  std::uint64_t request = 0;  ///< the request that `whom` has to answer; 0: none was sent
  std::string message = {};   ///< "Activation": that request, or the one that has to come
  bool on_its_way = false;    ///< `whom` has done its part: these are bytes under way
  ActorKey key = {};          ///< of `whom`

  auto operator<=>(const Wait&) const = default;
};

/// A request that has arrived and is not answered yet.
struct Owed {
  std::string to;             ///< who sent it
  std::uint64_t request = 0;  ///< its number, of those that `to` has sent
  ActorKey key = {};          ///< of `to`

  auto operator<=>(const Owed&) const = default;
};

struct ActorWaits {
  std::string who;
  std::string node;   ///< the process it lives in; empty: there is one
  bool busy = false;  ///< in a handler: what it waits for and owes is not known
  std::vector<Wait> waits;
  std::vector<Owed> owes;
  ActorKey key = {};  ///< of `who`
};

/// "the gradient of microbatch 3 from stage vision.s0 dp1".
std::string ToString(const Wait& wait);
/// The same without "the", for what is not there: "no gradient of microbatch 3 from ...".
std::string WithoutArticle(const Wait& wait);

}  // namespace troupe
