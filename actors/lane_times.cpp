#include "actors/lane_times.hpp"

#include <algorithm>

namespace troupe {

static_assert(kNumLanes == 2, "pieces of two other lanes may overlap each other");

std::int64_t LaneTimes::Count(Lane lane, std::int64_t begin_ns, std::int64_t end_ns) {
  const auto own = static_cast<std::size_t>(lane);
  std::int64_t fresh_ns = end_ns - begin_ns;
  for (const Piece& other : counted_[1 - own]) {
    const std::int64_t from_ns = std::max(begin_ns, other.begin_ns);
    fresh_ns -= std::max<std::int64_t>(std::min(end_ns, other.end_ns) - from_ns, 0);
  }
  counted_[own].push_back({begin_ns, end_ns});
  return std::max<std::int64_t>(fresh_ns, 0);  // the clocks of lanes are read separately
}

void LaneTimes::Emptied(Lane lane) { counted_[1 - static_cast<std::size_t>(lane)].clear(); }

}  // namespace troupe
