#include "schedule/even_groups.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "layout/at.hpp"

namespace troupe {
namespace {

/// The mean load of `num_groups` groups, in the unit in which loads are compared: a square of the load of
/// all fits 64 bits, and the sum of a few of them.
std::int64_t MeanLoad(std::int64_t num_groups) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 29) / num_groups, 1, std::int64_t{1} << 20);
}

/// Pairs of samples that are compared for a swap: about 10 ms on one core, and all pairs of 1400 samples.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 21;

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("even groups: " + what);
}

void Check(const std::vector<std::vector<std::int64_t>>& costs, const SampleColumns& columns) {
  std::int64_t room = 0;
  for (const std::int64_t each : columns.room) {
    Require(each >= 0, "a column with room for " + std::to_string(each));
    room += each;
  }
  Require(room == std::ssize(costs), "expected room for " + std::to_string(costs.size()) +
                                         " samples, got " + std::to_string(room));
  for (const auto& groups : columns.group_of) {
    Require(groups.size() == columns.room.size(), "expected a group of every column");
    for (const int group : groups) Require(group >= 0, "a group below 0");
  }
  for (const auto& sample : costs) {
    Require(sample.size() == columns.group_of.size(), "expected a cost of every kind");
    for (const std::int64_t cost : sample) Require(cost >= 0, "a cost below 0");
  }
}

/// The loads of all groups. Their sum of squares is smallest if those of each kind are equal.
class Loads {
 public:
  Loads(const std::vector<std::vector<std::int64_t>>& costs, const SampleColumns& columns)
      : columns_(columns), costs_(costs) {
    for (std::size_t kind = 0; kind < columns.group_of.size(); ++kind) {
      const auto& groups = columns.group_of[kind];
      const int num_groups = groups.empty() ? 1 : std::ranges::max(groups) + 1;
      std::int64_t total = 0;
      for (const auto& sample : costs) total += sample[kind];
      const std::int64_t mean = std::max<std::int64_t>(total / num_groups, 1);
      const std::int64_t parts = MeanLoad(num_groups);
      for (auto& sample : costs_) {
        sample[kind] = mean >= parts ? sample[kind] / (mean / parts) : sample[kind] * parts / mean;
      }
      loads_.emplace_back(At(num_groups));
    }
  }

  std::int64_t TotalOf(std::size_t sample) const {
    return std::accumulate(costs_[sample].begin(), costs_[sample].end(), std::int64_t{0});
  }

  /// Half of what the sample adds to the sum of squares in that column, less what it adds in any.
  std::int64_t AddedBy(std::size_t sample, std::size_t column) const {
    std::int64_t added = 0;
    for (std::size_t kind = 0; kind < loads_.size(); ++kind) {
      added += LoadOf(kind, column) * costs_[sample][kind];
    }
    return added;
  }

  void Add(std::size_t sample, std::size_t column) { Change(sample, column, 1); }

  /// Half of what a swap of sample a in column `in_a` with sample b in column `in_b` adds to the sum of squares.
  std::int64_t AddedBySwap(std::size_t a, std::size_t in_a, std::size_t b, std::size_t in_b) const {
    std::int64_t added = 0;
    for (std::size_t kind = 0; kind < loads_.size(); ++kind) {
      if (GroupOf(kind, in_a) == GroupOf(kind, in_b)) continue;
      const std::int64_t more = costs_[b][kind] - costs_[a][kind];  // in the group of a
      added += more * (LoadOf(kind, in_a) - LoadOf(kind, in_b) + more);
    }
    return added;
  }

  void Swap(std::size_t a, std::size_t in_a, std::size_t b, std::size_t in_b) {
    Change(a, in_a, -1);
    Change(b, in_b, -1);
    Change(a, in_b, 1);
    Change(b, in_a, 1);
  }

 private:
  std::size_t GroupOf(std::size_t kind, std::size_t column) const {
    return At(columns_.group_of[kind][column]);
  }
  std::int64_t LoadOf(std::size_t kind, std::size_t column) const {
    return loads_[kind][GroupOf(kind, column)];
  }
  void Change(std::size_t sample, std::size_t column, std::int64_t sign) {
    for (std::size_t kind = 0; kind < loads_.size(); ++kind) {
      loads_[kind][GroupOf(kind, column)] += sign * costs_[sample][kind];
    }
  }

  const SampleColumns& columns_;
  std::vector<std::vector<std::int64_t>> costs_;  ///< by sample, by kind: parts of a mean load
  std::vector<std::vector<std::int64_t>> loads_;  ///< by kind, by group
};

/// Swaps each sample with the one for which that helps most, until no swap helps.
void SwapSamples(Loads& loads, std::vector<int>& column_of) {
  std::int64_t pairs = 0;
  bool swapped = true;
  while (swapped) {
    swapped = false;
    for (std::size_t a = 0; a < column_of.size(); ++a) {
      pairs += std::ssize(column_of);
      if (pairs > kMostPairs) return;
      std::int64_t least = 0;
      std::size_t best = a;
      for (std::size_t b = 0; b < column_of.size(); ++b) {
        if (column_of[a] == column_of[b]) continue;
        const std::int64_t added = loads.AddedBySwap(a, At(column_of[a]), b, At(column_of[b]));
        if (added >= least) continue;
        least = added;
        best = b;
      }
      if (best == a) continue;
      loads.Swap(a, At(column_of[a]), best, At(column_of[best]));
      std::swap(column_of[a], column_of[best]);
      swapped = true;
    }
  }
}

}  // namespace

std::vector<int> DivideEvenly(const std::vector<std::vector<std::int64_t>>& costs,
                              const SampleColumns& columns) {
  Check(costs, columns);
  Loads loads(costs, columns);
  std::vector<std::size_t> largest_first(costs.size());
  std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
  std::ranges::stable_sort(largest_first, std::ranges::greater(),
                           [&](std::size_t sample) { return loads.TotalOf(sample); });
  std::vector<std::int64_t> room = columns.room;
  std::vector<int> column_of(costs.size());
  for (const std::size_t sample : largest_first) {
    int best = -1;
    std::int64_t least = 0;
    for (int column = 0; At(column) < room.size(); ++column) {
      if (room[At(column)] == 0) continue;
      const std::int64_t added = loads.AddedBy(sample, At(column));
      if (best >= 0 && added >= least) continue;
      best = column;
      least = added;
    }
    --room[At(best)];
    loads.Add(sample, At(best));
    column_of[sample] = best;
  }
  SwapSamples(loads, column_of);
  return column_of;
}

}  // namespace troupe
