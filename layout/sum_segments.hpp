// How ranks in several processes sum tensors: in segments, so that summing overlaps with transfer. The
// transport has room for those in flight, and estimates of memory count it.
#pragma once

#include <cstddef>

namespace troupe {

inline constexpr std::size_t kSumSegmentBytes = std::size_t{512} << 10;
/// Segments in flight per peer.
inline constexpr std::size_t kSumSegmentsInFlight = 4;

}  // namespace troupe
