// The time for which an encoder's state was offloaded, and the cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

/// Covers all shards of one module, which leave and return together.
struct OffloadTime {
  std::string module;
  std::int64_t windows = 0;
  std::int64_t out_ns = 0;   ///< copying off the devices, from the first shard's begin to the last
                             ///< one's end; median of the windows
  std::int64_t back_ns = 0;  ///< the same for the copies back
  std::int64_t away_ns = 0;  ///< time between the two, summed over windows
  /// Summed over windows: the rows' gradients had been exchanged and the encoder's backward waited
  /// for its state alone. 0 (unknown) for an encoder without gradients.
  std::int64_t exposed_ns = 0;
};

/// By module; counts windows that left and returned between `begin_ns` and `end_ns`.
std::vector<OffloadTime> OffloadTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                        std::int64_t end_ns);

/// One line, with shares of `whole_ns`.
std::string Format(const OffloadTime& offload, std::int64_t whole_ns);

}  // namespace troupe
