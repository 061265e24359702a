// Which rank computes which part of a module: layout + ordered rank list -> coordinates.
#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// An impossible layout. The text is one line, subject first.
struct LayoutError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A direction of a grid.
enum class Axis { kTensor, kContext, kData, kPipeline };

/// The axes in the order in which they vary along a module's rank list, fastest first. With the
/// default, a pipeline stage is a contiguous block of ranks (Megatron-Bridge's order, too).
using AxisOrder = std::array<Axis, 4>;
inline constexpr AxisOrder kDefaultAxisOrder = {Axis::kTensor, Axis::kContext, Axis::kData,
                                                Axis::kPipeline};

/// "tp", "cp", "dp", "pp".
std::string ToString(Axis axis);

/// The position of a rank in its module's grid.
struct Coordinates {
  int tp = 0;
  int cp = 0;
  int dp = 0;
  int pp = 0;
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

/// A direction in which the experts of a stage divide its ranks along tp, cp and dp.
enum class ExpertAxis { kTensor, kExpert, kData };

/// These axes in the order in which they vary along the ranks of a stage, fastest first. The ranks along
/// the first two are neighbours and exchange tokens.
inline constexpr std::array<ExpertAxis, 3> kExpertAxisOrder = {
    ExpertAxis::kTensor, ExpertAxis::kExpert, ExpertAxis::kData};

/// "etp", "ep", "expert-dp".
std::string ToString(ExpertAxis axis);

/// The position of a rank among those of its stage, as experts divide them.
struct ExpertCoordinates {
  int etp = 0;
  int ep = 0;
  int dp = 0;
  friend bool operator==(const ExpertCoordinates&, const ExpertCoordinates&) = default;
};

/// The parallel sizes of one module. `ep` and `etp` divide tp*cp*dp for experts and add no ranks.
struct Layout {
  int tp = 1;
  int cp = 1;
  int pp = 1;
  int dp = 1;
  int ep = 1;      ///< parts into which the experts are divided
  int etp = 1;     ///< parts of each expert
  bool sp = true;  ///< sequence parallel: with tp above 1, layers' rows are cut over tp, too

  bool cuts_rows() const { return sp && tp > 1; }
  int num_ranks() const { return tp * cp * pp * dp; }
  /// Ranks that hold the same parameters: those along dp and cp, cp fastest. They add up gradients.
  int num_holders() const { return dp * cp; }
  int HolderAt(const Coordinates& at) const { return at.dp * cp + at.cp; }
  Coordinates WithHolder(Coordinates at, int holder) const {
    at.dp = holder / cp;
    at.cp = holder % cp;
    return at;
  }
  int size(Axis axis) const;

  // Experts. The ranks of a stage are numbered along tp, cp and dp, tp fastest, whatever the axis order.
  int stage_ranks() const { return tp * cp * dp; }
  int StageRankOf(const Coordinates& at) const { return at.tp + tp * (at.cp + cp * at.dp); }
  Coordinates AtStageRank(int rank, int stage) const {
    return {.tp = rank % tp, .cp = rank / tp % cp, .dp = rank / (tp * cp), .pp = stage};
  }
  /// Ranks that exchange tokens: neighbours, which have each expert once.
  int expert_group() const { return ep * etp; }
  /// Ranks that hold the same parts of the same experts.
  int expert_holders() const { return stage_ranks() / expert_group(); }
  int size(ExpertAxis axis) const;
  ExpertCoordinates ExpertsAt(const Coordinates& at) const;
  /// Replicas that have to run the same passes in the same order, since they share an expert group.
  int lock_step_replicas() const { return std::max(1, expert_group() / (tp * cp)); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Returns why the ranks of a stage cannot be divided among experts, or "".
std::string WhyNoExperts(const Layout& layout);

/// "tp2 pp2": only the sizes above 1, "1 rank" when there is none. " without sp" follows where that is
/// off.
std::string ToString(const Layout& layout);

/// One module's ranks as a Cartesian product. Immutable.
class Grid {
 public:
  /// `ranks` are devices of the job, in the order the axes run over; they need not be contiguous.
  /// Throws LayoutError: a size below 1, a repeated axis or rank, a negative rank, a rank count
  /// that is not tp*cp*pp*dp, an ep * etp that does not divide tp*cp*dp, or that is neither a multiple nor
  /// a divisor of tp*cp.
  Grid(Layout layout, std::vector<int> ranks, AxisOrder order = kDefaultAxisOrder);

  const Layout& layout() const { return layout_; }
  const std::vector<int>& ranks() const { return ranks_; }

  bool Contains(int rank) const;
  /// Throws LayoutError for coordinates outside the layout.
  int RankAt(const Coordinates& at) const;
  /// Throws LayoutError for a rank outside this grid.
  Coordinates CoordinatesOf(int rank) const;

  /// The tp x cp ranks of stage `pp` of replica `dp`, tp fastest: they run one pass together.
  std::vector<int> StageRanks(int pp, int dp) const;
  /// The ranks of stage `pp` of all replicas, one replica after the other.
  std::vector<int> RanksAt(int pp) const;
  /// The rank at tp = 0 of that stage, replica and part along cp. It represents the shard at a boundary.
  int Leader(int pp, int dp, int cp) const;
  /// Those of all parts.
  std::vector<int> Leaders(int pp, int dp) const;

 private:
  Layout layout_;
  std::vector<int> ranks_;
  AxisOrder order_;
};

/// How two modules share devices; decides how their edge is carried.
enum class Placement { kDisjoint, kColocated, kInline };

/// "disjoint", "colocated", "inline".
std::string ToString(Placement placement);

/// Disjoint when no rank is shared, colocated when all are (in any order). Throws LayoutError that
/// lists the shared ranks when the sets overlap in part.
Placement PlacementOf(const Grid& source, const Grid& destination);

}  // namespace troupe
