#include "cluster/places.hpp"

#include <algorithm>

namespace troupe {
namespace {

// Files, libraries and threads of the process itself, and one batch of new connections.
constexpr std::size_t kOwnDescriptors = 512;
// Control, heartbeat and tensors; with TLS each takes three descriptors.
constexpr std::size_t kDescriptorsPerPeer = 12;
constexpr std::size_t kFewestPlaces = 16;

/// How many connections each source may keep so that all fit: at least 1.
std::size_t ShareOf(const std::vector<std::size_t>& counts, const PlaceLimits& limits) {
  std::size_t low = 1;
  std::size_t high = std::max<std::size_t>(limits.per_source, 1);
  while (low < high) {
    const std::size_t share = (low + high + 1) / 2;
    std::size_t sum = 0;
    for (const std::size_t count : counts) sum += std::min(count, share);
    if (sum <= limits.total) {
      low = share;
    } else {
      high = share - 1;
    }
  }
  return low;
}

}  // namespace

PlaceLimits PlacesFor(std::size_t descriptors, int num_processes) {
  const std::size_t needed = DescriptorsFor(0, num_processes);
  PlaceLimits limits;
  const std::size_t left = descriptors > needed ? descriptors - needed : 0;
  limits.total = std::clamp(left, kFewestPlaces, limits.total);
  limits.per_source = limits.total / 2;
  return limits;
}

std::size_t DescriptorsFor(std::size_t places, int num_processes) {
  return kOwnDescriptors + kDescriptorsPerPeer * static_cast<std::size_t>(num_processes) + places;
}

std::vector<std::size_t> ChooseEvicted(std::span<const Occupant> oldest_first,
                                       const PlaceLimits& limits) {
  std::vector<std::size_t> counts;
  for (const Occupant& occupant : oldest_first) {
    if (counts.size() <= occupant.source) counts.resize(occupant.source + 1, 0);
    ++counts[occupant.source];
  }
  const std::size_t share = ShareOf(counts, limits);
  std::vector<bool> evicted(oldest_first.size(), false);
  std::size_t left = oldest_first.size();
  const auto evict = [&](bool silent, const auto& surplus) {
    for (std::size_t i = 0; i < oldest_first.size(); ++i) {
      const Occupant& occupant = oldest_first[i];
      if (evicted[i] || occupant.silent != silent || !surplus(occupant)) continue;
      evicted[i] = true;
      --counts[occupant.source];
      --left;
    }
  };
  for (const bool silent : {true, false})
    evict(silent, [&](const Occupant& occupant) { return counts[occupant.source] > share; });
  // There are more sources than places.
  for (const bool silent : {true, false})
    evict(silent, [&](const Occupant&) { return left > limits.total; });
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < evicted.size(); ++i)
    if (evicted[i]) places.push_back(i);
  return places;
}

}  // namespace troupe
