#include "layout/grid.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <catch2/catch.hpp>

using Catch::Matchers::Message;

namespace troupe {
namespace {

constexpr int kMaxRanks = 24;
constexpr AxisOrder kPipelineFirst = {Axis::kPipeline, Axis::kData, Axis::kContext, Axis::kTensor};
constexpr std::array<Axis, 4> kAllAxes = {Axis::kTensor, Axis::kContext, Axis::kData,
                                          Axis::kPipeline};

/// Neither contiguous nor ascending: 100, 137, 174, 110, ...; no rank is also an index.
std::vector<int> ScatteredRanks(int count) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(100 + (i * 37) % 101);
  return ranks;
}

/// Every layout of sizes 1 to 4 on up to 24 ranks, in both axis orders.
void ForEveryGrid(const std::function<void(const Grid&)>& check) {
  for (int tp = 1; tp <= 4; ++tp) {
    for (int cp = 1; cp <= 4; ++cp) {
      for (int pp = 1; pp <= 4; ++pp) {
        for (int dp = 1; dp <= 4; ++dp) {
          const Layout layout{.tp = tp, .cp = cp, .pp = pp, .dp = dp, .ep = 1};
          if (layout.num_ranks() > kMaxRanks) continue;
          const std::vector<int> ranks = ScatteredRanks(layout.num_ranks());
          check(Grid(layout, ranks));
          check(Grid(layout, ranks, kPipelineFirst));
        }
      }
    }
  }
}

std::vector<Coordinates> AllCoordinates(const Layout& layout) {
  std::vector<Coordinates> all;
  for (int tp = 0; tp < layout.tp; ++tp) {
    for (int cp = 0; cp < layout.cp; ++cp) {
      for (int dp = 0; dp < layout.dp; ++dp) {
        for (int pp = 0; pp < layout.pp; ++pp) {
          all.push_back({.tp = tp, .cp = cp, .dp = dp, .pp = pp});
        }
      }
    }
  }
  return all;
}

std::vector<int> Sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> Iota(int count, int first = 0) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i);
  return ranks;
}

/// All ranks of all groups, sorted: equal to the grid's ranks when the groups partition them.
std::vector<int> Union(const std::vector<std::vector<int>>& groups) {
  std::vector<int> all;
  for (const std::vector<int>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return Sorted(all);
}

void CheckRefused(const Layout& layout, const std::vector<int>& ranks, const std::string& text) {
  CHECK_THROWS_MATCHES(Grid(layout, ranks), LayoutError, Message(text));
}

TEST_CASE("coordinates and ranks map one to one in every layout and axis order", "[layout]") {
  ForEveryGrid([](const Grid& grid) {
    std::set<int> seen;
    for (const Coordinates& at : AllCoordinates(grid.layout())) {
      const int rank = grid.RankAt(at);
      REQUIRE(grid.CoordinatesOf(rank) == at);
      REQUIRE(grid.Contains(rank));
      seen.insert(rank);
    }
    REQUIRE(Sorted(grid.ranks()) == std::vector<int>(seen.begin(), seen.end()));
  });
}

TEST_CASE("stages of replicas partition the ranks, leaders first", "[layout]") {
  ForEveryGrid([](const Grid& grid) {
    std::vector<std::vector<int>> stages;
    for (int dp = 0; dp < grid.layout().dp; ++dp) {
      for (int pp = 0; pp < grid.layout().pp; ++pp) {
        stages.push_back(grid.StageRanks(pp, dp));
        REQUIRE(stages.back().front() == grid.Leader(pp, dp, 0));
        REQUIRE(grid.CoordinatesOf(grid.Leader(pp, dp, 0)) ==
                Coordinates{.tp = 0, .cp = 0, .dp = dp, .pp = pp});
      }
    }
    REQUIRE(Union(stages) == Sorted(grid.ranks()));
  });
}

TEST_CASE("by default tp varies fastest, then cp, dp, pp", "[layout]") {
  const Grid grid({.tp = 2, .cp = 2, .pp = 2, .dp = 2, .ep = 1}, Iota(16, 30));
  CHECK(grid.RankAt({.tp = 1, .cp = 0, .dp = 0, .pp = 0}) == 31);
  CHECK(grid.RankAt({.tp = 0, .cp = 1, .dp = 0, .pp = 0}) == 32);
  CHECK(grid.RankAt({.tp = 0, .cp = 0, .dp = 1, .pp = 0}) == 34);
  CHECK(grid.RankAt({.tp = 0, .cp = 0, .dp = 0, .pp = 1}) == 38);
  CHECK(grid.StageRanks(1, 1) == std::vector<int>{42, 43, 44, 45});
  CHECK(grid.StageRanks(0, 0) == std::vector<int>{30, 31, 32, 33});
  CHECK(grid.StageRanks(1, 0) == std::vector<int>{38, 39, 40, 41});
}

TEST_CASE("another axis order moves ranks but keeps tp fastest within a stage", "[layout]") {
  const Grid grid({.tp = 2, .cp = 1, .pp = 3, .dp = 2, .ep = 1}, Iota(12), kPipelineFirst);
  CHECK(grid.RankAt({.tp = 0, .cp = 0, .dp = 0, .pp = 1}) == 1);
  CHECK(grid.RankAt({.tp = 0, .cp = 0, .dp = 1, .pp = 0}) == 3);
  CHECK(grid.StageRanks(2, 1) == std::vector<int>{5, 11});
}

TEST_CASE("layouts are written by their sizes above 1", "[layout]") {
  CHECK(ToString(Layout{}) == "1 rank");
  CHECK(ToString(Layout{.tp = 2, .cp = 1, .pp = 2, .dp = 1, .ep = 1}) == "tp2 pp2");
  CHECK(ToString(Layout{.tp = 2, .cp = 3, .pp = 4, .dp = 5, .ep = 6}) == "tp2 cp3 pp4 dp5 ep6");
}

TEST_CASE("experts divide the ranks of a stage again, neighbours first", "[layout]") {
  const Layout layout{.tp = 2, .cp = 2, .pp = 3, .dp = 3, .ep = 2, .etp = 2};
  CHECK(layout.expert_holders() == 3);
  CHECK(layout.lock_step_replicas() == 1);
  for (int rank = 0; rank < layout.stage_ranks(); ++rank) {
    const Coordinates at = layout.AtStageRank(rank, 1);
    CHECK(layout.StageRankOf(at) == rank);
    CHECK(layout.ExpertsAt(at) == ExpertCoordinates{rank % 2, rank / 2 % 2, rank / 4});
  }
  CHECK(Layout{.tp = 2, .dp = 4, .ep = 4}.lock_step_replicas() == 2);
  CHECK(ToString(Layout{.dp = 4, .ep = 2, .etp = 2}) == "dp4 ep2 etp2");
}

TEST_CASE("impossible layouts are refused with the number that is wrong", "[layout]") {
  CheckRefused({.tp = 0}, {0}, "tp is 0, expected at least 1");
  CheckRefused({.pp = -2}, {0}, "pp is -2, expected at least 1");
  CheckRefused({.ep = 0}, {0}, "ep is 0, expected at least 1");
  CheckRefused({.tp = 2, .pp = 2}, {0, 1, 2},
               "layout tp 2 x cp 1 x pp 2 x dp 1 needs 4 ranks, but 3 are listed");
  CheckRefused({}, {}, "layout tp 1 x cp 1 x pp 1 x dp 1 needs 1 ranks, but 0 are listed");
  CheckRefused({.dp = 3}, {5, 4, 5}, "rank 5 is listed twice");
  CheckRefused({.dp = 2}, {-1, 0}, "rank -1 is negative");
  CheckRefused({.tp = 2, .dp = 2, .ep = 3}, Iota(4),
               "expected ep*etp to divide tp*cp*dp = 4, got 3");
  CheckRefused({.tp = 2, .dp = 2, .etp = 8}, Iota(4),
               "expected ep*etp to divide tp*cp*dp = 4, got 8");
  CheckRefused({.tp = 6, .dp = 2, .ep = 4}, Iota(12),
               "expected ep*etp to be a multiple or a divisor of tp*cp = 6, got 4");
  const Layout huge{.tp = 1 << 30, .cp = 1 << 30, .pp = 1 << 30, .dp = 1 << 30, .ep = 1};
  CHECK_THROWS_WITH(Grid(huge, {0}), Catch::Contains("needs more than 2^64 ranks"));
  const Layout wraps{.tp = 1 << 16, .cp = 1 << 16, .pp = 1, .dp = 1, .ep = 1};
  CHECK_THROWS_WITH(Grid(wraps, {}), Catch::Contains("needs 4294967296 ranks"));
}

TEST_CASE("an axis order names each axis once", "[layout]") {
  const AxisOrder order = {Axis::kTensor, Axis::kContext, Axis::kData, Axis::kData};
  CHECK_THROWS_MATCHES(Grid({}, {0}, order), LayoutError,
                       Message("axis order names pp 0 times, expected once"));
}

TEST_CASE("coordinates and ranks outside the grid are refused", "[layout]") {
  const Grid grid({.tp = 2}, {7, 9});
  CHECK_FALSE(grid.Contains(8));
  CHECK_THROWS_MATCHES(grid.CoordinatesOf(8), LayoutError, Message("rank 8 is not one of 7, 9"));
  CHECK_THROWS_MATCHES(grid.RankAt({.tp = 2}), LayoutError,
                       Message("tp coordinate is 2, expected 0 to 1"));
  CHECK_THROWS_AS(grid.Leader(0, -1, 0), LayoutError);
  CHECK_THROWS_AS(grid.StageRanks(1, 0), LayoutError);
}

TEST_CASE("placement follows from the rank sets, whatever their order", "[layout]") {
  const Grid vision({.dp = 4}, {3, 2, 1, 0});
  CHECK(PlacementOf(vision, Grid({.tp = 2}, {4, 5})) == Placement::kDisjoint);
  CHECK(PlacementOf(vision, Grid({.tp = 2, .pp = 2}, {0, 1, 2, 3})) == Placement::kColocated);
  CHECK_THROWS_MATCHES(PlacementOf(vision, Grid({.tp = 2}, {2, 1})), LayoutError,
                       Message("rank sets share 1, 2 of 3, 2, 1, 0 and 2, 1, "
                               "expected all ranks or none"));
  CHECK_THROWS_AS(PlacementOf(Grid({.tp = 2}, {2, 1}), vision), LayoutError);
  CHECK_THROWS_AS(PlacementOf(vision, Grid({.dp = 4}, {3, 4, 5, 6})), LayoutError);
  CHECK(ToString(Placement::kDisjoint) == "disjoint");
  CHECK(ToString(Placement::kColocated) == "colocated");
  CHECK(ToString(Placement::kInline) == "inline");
}

}  // namespace
}  // namespace troupe
