#include "layout/grid.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "layout/at.hpp"
#include "layout/text.hpp"

namespace troupe {

namespace {

constexpr std::array<Axis, 4> kAxes = {Axis::kTensor, Axis::kContext, Axis::kPipeline, Axis::kData};

struct AxisFields {
  const char* word;
  int Layout::*size;
  int Coordinates::*index;
};

const AxisFields& FieldsOf(Axis axis) {
  static constexpr std::array<AxisFields, 4> kInOrderOfAxis = {
      {{"tp", &Layout::tp, &Coordinates::tp},
       {"cp", &Layout::cp, &Coordinates::cp},
       {"dp", &Layout::dp, &Coordinates::dp},
       {"pp", &Layout::pp, &Coordinates::pp}}};
  return kInOrderOfAxis[static_cast<std::size_t>(axis)];
}

std::string JoinRanks(const std::vector<int>& ranks) {
  return Listed(ranks, ", ", [](int rank) { return std::to_string(rank); });
}

void CheckSizes(const Layout& layout) {
  for (const Axis axis : kAxes) {
    if (layout.size(axis) < 1) {
      throw LayoutError(ToString(axis) + " is " + std::to_string(layout.size(axis)) +
                        ", expected at least 1");
    }
  }
  for (const ExpertAxis axis : {ExpertAxis::kExpert, ExpertAxis::kTensor}) {
    if (layout.size(axis) >= 1) continue;
    throw LayoutError(ToString(axis) + " is " + std::to_string(layout.size(axis)) +
                      ", expected at least 1");
  }
}

void CheckOrder(const AxisOrder& order) {
  for (const Axis axis : kAxes) {
    const auto times = std::ranges::count(order, axis);
    if (times != 1) {
      throw LayoutError("axis order names " + ToString(axis) + " " + std::to_string(times) +
                        " times, expected once");
    }
  }
}

std::vector<int> Sorted(std::vector<int> ranks) {
  if (!std::ranges::is_sorted(ranks)) std::ranges::sort(ranks);
  return ranks;
}

void CheckRanks(const std::vector<int>& ranks) {
  const std::vector<int> sorted = Sorted(ranks);
  if (!sorted.empty() && sorted.front() < 0) {
    throw LayoutError("rank " + std::to_string(sorted.front()) + " is negative");
  }
  const auto twice = std::ranges::adjacent_find(sorted);
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

void CheckExpertSizes(const Layout& layout) {
  const std::string why = WhyNoExperts(layout);
  if (!why.empty()) throw LayoutError(why);
}

}  // namespace

std::string ToString(Axis axis) { return FieldsOf(axis).word; }

std::string ToString(ExpertAxis axis) {
  static constexpr std::array<const char*, 3> kWords = {"etp", "ep", "expert-dp"};
  return kWords[static_cast<std::size_t>(axis)];
}

int Layout::size(Axis axis) const { return this->*FieldsOf(axis).size; }

int Layout::size(ExpertAxis axis) const {
  if (axis == ExpertAxis::kData) return expert_holders();
  return axis == ExpertAxis::kTensor ? etp : ep;
}

ExpertCoordinates Layout::ExpertsAt(const Coordinates& at) const {
  ExpertCoordinates found;
  int place = StageRankOf(at);
  for (const ExpertAxis axis : kExpertAxisOrder) {
    const int index = place % size(axis);
    place /= size(axis);
    (axis == ExpertAxis::kTensor   ? found.etp
     : axis == ExpertAxis::kExpert ? found.ep
                                   : found.dp) = index;
  }
  return found;
}

std::string WhyNoExperts(const Layout& layout) {
  const std::int64_t divided = std::int64_t{layout.tp} * layout.cp * layout.dp;
  const std::int64_t replica = std::int64_t{layout.tp} * layout.cp;
  const std::int64_t group = std::int64_t{layout.ep} * layout.etp;
  const std::string got = ", got " + std::to_string(group);
  if (divided % group != 0) {
    return "expected ep*etp to divide tp*cp*dp = " + std::to_string(divided) + got;
  }
  if (replica % group != 0 && group % replica != 0) {
    return "expected ep*etp to be a multiple or a divisor of tp*cp = " + std::to_string(replica) +
           got;
  }
  return {};
}

std::string ToString(const Layout& layout) {
  std::string text;
  const auto add = [&text](const std::string& name, int size) {
    if (size != 1) text += (text.empty() ? "" : " ") + name + std::to_string(size);
  };
  for (const Axis axis : kAxes) add(ToString(axis), layout.size(axis));
  add("ep", layout.ep);
  add("etp", layout.etp);
  if (layout.tp > 1 && !layout.sp) text += " without sp";
  return text.empty() ? "1 rank" : text;
}

Grid::Grid(Layout layout, std::vector<int> ranks, AxisOrder order)
    : layout_(layout), ranks_(std::move(ranks)), order_(order) {
  CheckSizes(layout_);
  CheckOrder(order_);
  CheckRanks(ranks_);
  CheckCount(layout_, ranks_.size());
  CheckExpertSizes(layout_);
}

/// Returns where `rank` is, or the end. Most lists count up from their first rank.
static std::vector<int>::const_iterator Find(const std::vector<int>& ranks, int rank) {
  if (rank >= ranks.front()) {
    const int place = rank - ranks.front();
    if (place < std::ssize(ranks) && ranks[At(place)] == rank) return ranks.begin() + place;
  }
  return std::ranges::find(ranks, rank);
}

bool Grid::Contains(int rank) const { return Find(ranks_, rank) != ranks_.end(); }

int Grid::RankAt(const Coordinates& at) const {
  int place = 0;
  int stride = 1;
  for (const Axis axis : order_) {
    const int index = at.*FieldsOf(axis).index;
    if (index < 0 || index >= layout_.size(axis)) {
      throw LayoutError(ToString(axis) + " coordinate is " + std::to_string(index) +
                        ", expected 0 to " + std::to_string(layout_.size(axis) - 1));
    }
    place += index * stride;
    stride *= layout_.size(axis);
  }
  return ranks_[At(place)];
}

Coordinates Grid::CoordinatesOf(int rank) const {
  const auto found = Find(ranks_, rank);
  if (found == ranks_.end()) {
    throw LayoutError("rank " + std::to_string(rank) + " is not one of " + JoinRanks(ranks_));
  }
  auto place = static_cast<int>(found - ranks_.begin());
  Coordinates at;
  for (const Axis axis : order_) {
    at.*FieldsOf(axis).index = place % layout_.size(axis);
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

int Grid::Leader(int pp, int dp, int cp) const {
  return RankAt({.tp = 0, .cp = cp, .dp = dp, .pp = pp});
}

std::vector<int> Grid::RanksAt(int pp) const {
  std::vector<int> ranks;
  for (int dp = 0; dp < layout_.dp; ++dp) {
    const auto replica = StageRanks(pp, dp);
    ranks.insert(ranks.end(), replica.begin(), replica.end());
  }
  return ranks;
}

std::vector<int> Grid::Leaders(int pp, int dp) const {
  std::vector<int> leaders;
  for (int cp = 0; cp < layout_.cp; ++cp) leaders.push_back(Leader(pp, dp, cp));
  return leaders;
}

std::string ToString(Placement placement) {
  static constexpr std::array<const char*, 3> kWords = {"disjoint", "colocated", "inline"};
  return kWords[static_cast<std::size_t>(placement)];
}

Placement PlacementOf(const Grid& source, const Grid& destination) {
  std::vector<int> shared;
  std::ranges::set_intersection(Sorted(source.ranks()), Sorted(destination.ranks()),
                                std::back_inserter(shared));
  if (shared.empty()) return Placement::kDisjoint;
  if (shared.size() == source.ranks().size() && shared.size() == destination.ranks().size()) {
    return Placement::kColocated;
  }
  throw LayoutError("rank sets share " + JoinRanks(shared) + " of " + JoinRanks(source.ranks()) +
                    " and " + JoinRanks(destination.ranks()) + ", expected all ranks or none");
}

}  // namespace troupe
