// What actors wait for and what they owe, in words that can be matched with each other: out of all
// of it follows whom a job hangs on (actors/wait_root.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Something somebody waits for.
struct Wait {
  std::string what;         ///< "gradient"
  std::string unit;         ///< "microbatch", "round"; empty: it has no number
  std::int64_t number = 0;  ///< of the unit
  std::string whom;         ///< "stage vision.s0 dp1"; empty: there is nobody to name
  bool asked = false;       ///< it is the answer to a request of ours, so `whom` must owe it
  std::string answer = {};  ///< it is a request that we will answer with this; empty: it is not

  auto operator<=>(const Wait&) const = default;
};

/// The answer to a request that has come and is not answered yet.
struct Owed {
  std::string what;
  std::int64_t number = 0;
  std::string to;  ///< who asked; empty: not known

  auto operator<=>(const Owed&) const = default;
};

struct ActorWaits {
  std::string who;
  std::string node;   ///< the process it lives in; empty: there is one
  bool busy = false;  ///< in a handler: what it waits for and owes is not known
  std::vector<Wait> waits;
  std::vector<Owed> owes;
};

/// "the gradient of microbatch 3 from stage vision.s0 dp1".
std::string ToString(const Wait& wait);
/// The same without "the", for what is not there: "no gradient of microbatch 3 from ...".
std::string WithoutArticle(const Wait& wait);

/// "forward on devices 1, 2": what the devices of one shard are asked for together.
std::string OnRanks(const std::string& what, const std::vector<int>& ranks);
/// The name of a device as an actor.
std::string DeviceName(int rank);

}  // namespace troupe
