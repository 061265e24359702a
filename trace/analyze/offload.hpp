// How long the state of an encoder was away from its devices, and what that cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

/// Of all shards of one module: what leaves and returns does so together.
struct OffloadTime {
  std::string module;
  std::int64_t windows = 0;
  std::int64_t out_ns = 0;   ///< copying off the devices, from the first shard's begin to the last
                             ///< one's end; median of the windows
  std::int64_t back_ns = 0;  ///< the same of the way back
  std::int64_t away_ns = 0;  ///< between the two, all windows together
  /// All windows together: the rows' gradients had been exchanged and the encoder's backward waited
  /// for its state alone. Of an encoder that gets no gradients it is not known: 0.
  std::int64_t exposed_ns = 0;
};

/// By module; windows that have left and returned from `begin_ns` to `end_ns`.
std::vector<OffloadTime> OffloadTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                        std::int64_t end_ns);

/// One line, with shares of `whole_ns`.
std::string Format(const OffloadTime& offload, std::int64_t whole_ns);

}  // namespace troupe
