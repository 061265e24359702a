// Decides which connections keep their places while a process listens. Unauthenticated connections
// are cheap and may be many, but not without bound. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe {

struct PlaceLimits {
  std::size_t total = 4096;
  /// Less than `total`, so that one address never takes all places.
  std::size_t per_source = 2048;
};

/// This many silent connections do not delay a meeting. Fewer places than this are worth a warning.
inline constexpr std::size_t kPromisedPlaces = 1024;

/// The limits for a process with `descriptors` open files in a job of `num_processes`.
PlaceLimits PlacesFor(std::size_t descriptors, int num_processes);
/// The number of open files that `places` need.
std::size_t DescriptorsFor(std::size_t places, int num_processes);

/// A connection that has not proven the run key.
struct Occupant {
  std::size_t source = 0;  ///< a small number for its address
  bool silent = true;      ///< has not sent a whole Opening yet
};

/// Returns the connections to drop, ascending. The source that holds most loses first. Within a
/// source, silent connections go before those that have started the handshake, and older ones
/// before newer ones: a member needs only a few round trips, and a flooding source replaces its own
/// connections.
std::vector<std::size_t> ChooseEvicted(std::span<const Occupant> oldest_first,
                                       const PlaceLimits& limits);

}  // namespace troupe
