#include "layout/grid.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<Axis, 4> kAxes = {Axis::kTensor, Axis::kContext, Axis::kPipeline, Axis::kData};

int& IndexOn(Coordinates& at, Axis axis) {
  switch (axis) {
    case Axis::kTensor:
      return at.tp;
    case Axis::kContext:
      return at.cp;
    case Axis::kData:
      return at.dp;
    case Axis::kPipeline:
      break;
  }
  return at.pp;
}

int IndexOn(const Coordinates& at, Axis axis) {
  Coordinates copy = at;
  return IndexOn(copy, axis);
}

std::string JoinRanks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

void CheckSizes(const Layout& layout) {
  for (const Axis axis : kAxes) {
    if (layout.size(axis) < 1) {
      throw LayoutError(ToString(axis) + " is " + std::to_string(layout.size(axis)) +
                        ", expected at least 1");
    }
  }
  if (layout.ep < 1) {
    throw LayoutError("ep is " + std::to_string(layout.ep) + ", expected at least 1");
  }
}

void CheckOrder(const AxisOrder& order) {
  for (const Axis axis : kAxes) {
    const auto times = std::count(order.begin(), order.end(), axis);
    if (times != 1) {
      throw LayoutError("axis order names " + ToString(axis) + " " + std::to_string(times) +
                        " times, expected once");
    }
  }
}

void CheckRanks(const std::vector<int>& ranks) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.front() < 0) {
    throw LayoutError("rank " + std::to_string(sorted.front()) + " is negative");
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw LayoutError("rank " + std::to_string(*twice) + " is listed twice");
  }
}

/// The product of the sizes must be the number of ranks. Sizes are user input, so the product may
/// exceed an int.
void CheckCount(const Layout& layout, std::size_t num_ranks) {
  std::string factors;
  std::uint64_t product = 1;
  bool countable = true;
  for (const Axis axis : kAxes) {
    const auto size = static_cast<std::uint64_t>(layout.size(axis));
    factors += (factors.empty() ? "" : " x ") + ToString(axis) + " " + std::to_string(size);
    countable = countable && !__builtin_mul_overflow(product, size, &product);
  }
  if (!countable || product != num_ranks) {
    throw LayoutError("layout " + factors + " needs " +
                      (countable ? std::to_string(product) : std::string("more than 2^64")) +
                      " ranks, but " + std::to_string(num_ranks) + " are listed");
  }
}

void CheckExperts(const Layout& layout) {
  const int divided = layout.tp * layout.cp * layout.dp;
  if (divided % layout.ep != 0) {
    throw LayoutError("ep " + std::to_string(layout.ep) +
                      " does not divide tp*cp*dp = " + std::to_string(divided));
  }
}

}  // namespace

std::string ToString(Axis axis) {
  switch (axis) {
    case Axis::kTensor:
      return "tp";
    case Axis::kContext:
      return "cp";
    case Axis::kData:
      return "dp";
    case Axis::kPipeline:
      break;
  }
  return "pp";
}

int Layout::size(Axis axis) const {
  switch (axis) {
    case Axis::kTensor:
      return tp;
    case Axis::kContext:
      return cp;
    case Axis::kData:
      return dp;
    case Axis::kPipeline:
      break;
  }
  return pp;
}

std::string ToString(const Layout& layout) {
  std::string text;
  const auto add = [&text](const std::string& name, int size) {
    if (size != 1) text += (text.empty() ? "" : " ") + name + std::to_string(size);
  };
  for (const Axis axis : kAxes) add(ToString(axis), layout.size(axis));
  add("ep", layout.ep);
  return text.empty() ? "1 rank" : text;
}

Grid::Grid(Layout layout, std::vector<int> ranks, AxisOrder order)
    : layout_(layout), ranks_(std::move(ranks)), order_(order) {
  CheckSizes(layout_);
  CheckOrder(order_);
  CheckRanks(ranks_);
  CheckCount(layout_, ranks_.size());
  CheckExperts(layout_);
}

bool Grid::Contains(int rank) const {
  return std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end();
}

int Grid::RankAt(const Coordinates& at) const {
  int place = 0;
  int stride = 1;
  for (const Axis axis : order_) {
    const int index = IndexOn(at, axis);
    if (index < 0 || index >= layout_.size(axis)) {
      throw LayoutError(ToString(axis) + " coordinate is " + std::to_string(index) +
                        ", expected 0 to " + std::to_string(layout_.size(axis) - 1));
    }
    place += index * stride;
    stride *= layout_.size(axis);
  }
  return ranks_[static_cast<std::size_t>(place)];
}

Coordinates Grid::CoordinatesOf(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) {
    throw LayoutError("rank " + std::to_string(rank) + " is not one of " + JoinRanks(ranks_));
  }
  auto place = static_cast<int>(found - ranks_.begin());
  Coordinates at;
  for (const Axis axis : order_) {
    IndexOn(at, axis) = place % layout_.size(axis);
    place /= layout_.size(axis);
  }
  return at;
}

std::vector<int> Grid::StageRanks(int pp, int dp) const {
  std::vector<int> ranks;
  for (int cp = 0; cp < layout_.cp; ++cp) {
    for (int tp = 0; tp < layout_.tp; ++tp) {
      ranks.push_back(RankAt({.tp = tp, .cp = cp, .dp = dp, .pp = pp}));
    }
  }
  return ranks;
}

int Grid::Leader(int pp, int dp) const { return RankAt({.tp = 0, .cp = 0, .dp = dp, .pp = pp}); }

std::string ToString(Placement placement) {
  switch (placement) {
    case Placement::kDisjoint:
      return "disjoint";
    case Placement::kColocated:
      return "colocated";
    case Placement::kInline:
      break;
  }
  return "inline";
}

Placement PlacementOf(const Grid& source, const Grid& destination) {
  std::vector<int> shared;
  for (const int rank : source.ranks()) {
    if (destination.Contains(rank)) shared.push_back(rank);
  }
  if (shared.empty()) return Placement::kDisjoint;
  if (shared.size() == source.ranks().size() && shared.size() == destination.ranks().size()) {
    return Placement::kColocated;
  }
  std::sort(shared.begin(), shared.end());
  throw LayoutError("rank sets share " + JoinRanks(shared) + " of " + JoinRanks(source.ranks()) +
                    " and " + JoinRanks(destination.ranks()) + ", expected all ranks or none");
}

}  // namespace troupe
