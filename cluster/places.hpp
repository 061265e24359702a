// Which connections keep their places while a process listens: those that have not proven the run
// key are held cheaply and in great number, but not without bound. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe {

struct PlaceLimits {
  std::size_t total = 4096;
  /// Less than `total`, so that one address alone never takes all places.
  std::size_t per_source = 2048;
};

/// So many silent connections do not delay a meeting; fewer places than that are worth a line.
inline constexpr std::size_t kPromisedPlaces = 1024;

/// What a process that may have `descriptors` files open can afford in a job of `num_processes`.
PlaceLimits PlacesFor(std::size_t descriptors, int num_processes);
/// How many open files that many places take.
std::size_t DescriptorsFor(std::size_t places, int num_processes);

/// A connection that has not proven the run key.
struct Occupant {
  std::size_t source = 0;  ///< a small number for its address
  bool silent = true;      ///< has not yet sent a whole Opening
};

/// Those that lose their places, ascending. The source that holds most loses first; of a source the
/// silent go before those that have begun the handshake, and the oldest before the newest: a member
/// needs a few round trips, whoever hammers replaces its own connections.
std::vector<std::size_t> ChooseEvicted(std::span<const Occupant> oldest_first,
                                       const PlaceLimits& limits);

}  // namespace troupe
