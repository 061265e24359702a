#include "layout/colocated_shares.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

using Counts = std::vector<std::int64_t>;

std::vector<int> Ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Counts CountsOf(const Assignment& held) {
  Counts counts;
  for (const std::vector<Interval>& intervals : held) {
    counts.push_back(0);
    for (const Interval& interval : intervals) counts.back() += interval.size();
  }
  return counts;
}

std::int64_t Spread(const Counts& counts) {
  const auto [least, most] = std::ranges::minmax_element(counts);
  return *most - *least;
}

std::vector<Layout> LayoutsOf(int num_ranks) {
  std::vector<Layout> layouts;
  for (int tp = 1; tp <= num_ranks; ++tp) {
    for (int pp = 1; tp * pp <= num_ranks; ++pp) {
      if (num_ranks % (tp * pp) != 0) continue;
      layouts.push_back({.tp = tp, .pp = pp, .dp = num_ranks / (tp * pp)});
    }
  }
  return layouts;
}

/// Every sample of a microbatch once, by a replica that shares a rank with the sample's language
/// replica (`homes`, by encoder replica).
void CheckHomes(const Assignment& held, const std::vector<std::set<int>>& homes,
                std::int64_t num_samples, int languages) {
  std::vector<int> times(static_cast<std::size_t>(num_samples), 0);
  for (std::size_t e = 0; e < held.size(); ++e) {
    for (const Interval& interval : held[e]) {
      for (std::int64_t n = interval.begin; n < interval.end; ++n) {
        ++times.at(static_cast<std::size_t>(n));
        int owner = 0;
        while (PartOf(num_samples, languages, owner).end <= n) ++owner;
        REQUIRE(homes[e].contains(owner));
      }
    }
  }
  REQUIRE(std::ranges::count(times, 1) == num_samples);
}

/// By encoder replica: the language replicas that share a rank with it.
std::vector<std::set<int>> HomesOf(const Grid& encoder, const Grid& language) {
  std::vector<std::set<int>> homes;
  for (int dp = 0; dp < encoder.layout().dp; ++dp) {
    homes.emplace_back();
    for (int pp = 0; pp < encoder.layout().pp; ++pp) {
      for (const int rank : encoder.StageRanks(pp, dp)) {
        homes.back().insert(language.CoordinatesOf(rank).dp);
      }
    }
  }
  return homes;
}

/// Checks `microbatches` of a round.
void CheckRound(const Grid& encoder, const Grid& language, std::int64_t num_samples,
                int microbatches) {
  const ColocatedShares shares(encoder, language);
  const int languages = language.layout().dp;
  const auto homes = HomesOf(encoder, language);
  Counts totals(static_cast<std::size_t>(encoder.layout().dp), 0);
  for (int m = 0; m < microbatches; ++m) {
    const Assignment held = shares.Microbatch(num_samples, m);
    CheckHomes(held, homes, num_samples, languages);
    const Counts counts = CountsOf(held);
    for (std::size_t e = 0; e < counts.size(); ++e) totals[e] += counts[e];
    if (num_samples % languages != 0) continue;
    REQUIRE(Spread(counts) <= 1);
    REQUIRE(Spread(totals) <= 1);  // so a step of any number of microbatches is even
  }
}

TEST_CASE("colocated samples are spread evenly in all layouts of up to 12 ranks", "[layout]") {
  std::mt19937 random(21);
  for (const int num_ranks : {1, 2, 3, 4, 6, 8, 12}) {
    for (const Layout& inner : LayoutsOf(num_ranks)) {
      for (const Layout& outer : LayoutsOf(num_ranks)) {
        const Grid language(outer, Ranks(num_ranks));
        std::vector<int> mixed = Ranks(num_ranks);
        std::shuffle(mixed.begin(), mixed.end(), random);
        for (const std::int64_t samples : {0, 1, 2, 3, 4, 7}) {
          CheckRound(Grid(inner, Ranks(num_ranks)), language, samples * outer.dp, 7);
          CheckRound(Grid(inner, mixed), language, samples * outer.dp, 7);
        }
        CheckRound(Grid(inner, mixed), language, 2 * outer.dp + 1, 4);
      }
    }
  }
}

TEST_CASE("every dp from 1 to 8 over every other spreads evenly over steps of any length",
          "[layout]") {
  for (int a = 1; a <= 8; ++a) {
    for (int b = 1; b <= 8; ++b) {
      const int num_ranks = std::lcm(a, b);
      for (const bool stages : {false, true}) {
        const int rest = num_ranks / b;
        const Layout outer = stages ? Layout{.pp = rest, .dp = b} : Layout{.tp = rest, .dp = b};
        const Grid encoder({.tp = num_ranks / a, .dp = a}, Ranks(num_ranks));
        for (const std::int64_t samples : {0, 1, 3, 4, 5}) {
          CheckRound(encoder, Grid(outer, Ranks(num_ranks)), samples * b, 17);
        }
      }
    }
  }
}

/// Samples by encoder replica of each microbatch of a step, and in all.
std::vector<Counts> StepOf(const Layout& encoder, const Layout& language, std::int64_t num_samples,
                           int microbatches) {
  const int num_ranks = encoder.num_ranks();
  const ColocatedShares shares(Grid(encoder, Ranks(num_ranks)), Grid(language, Ranks(num_ranks)));
  std::vector<Counts> counts;
  Counts totals(static_cast<std::size_t>(encoder.dp), 0);
  for (int m = 0; m < microbatches; ++m) {
    counts.push_back(CountsOf(shares.Microbatch(num_samples, m)));
    for (std::size_t e = 0; e < totals.size(); ++e) totals[e] += counts.back()[e];
  }
  counts.push_back(totals);
  return counts;
}

TEST_CASE("32 samples over dp 3 to 2 are 11, 11 and 10", "[layout]") {
  const auto step = StepOf({.tp = 2, .dp = 3}, {.pp = 3, .dp = 2}, 8, 4);
  Counts totals = step.back();
  std::ranges::sort(totals);
  CHECK(totals == Counts{10, 11, 11});
  for (int m = 0; m < 4; ++m) CHECK(Spread(step[static_cast<std::size_t>(m)]) == 1);
}

TEST_CASE("over dp 6 to 2 each replica is the one with more in its turn", "[layout]") {
  CHECK(StepOf({.dp = 6}, {.pp = 3, .dp = 2}, 8, 3) ==
        std::vector<Counts>{
            {2, 2, 1, 1, 1, 1}, {1, 1, 1, 1, 2, 2}, {1, 1, 2, 2, 1, 1}, {4, 4, 4, 4, 4, 4}});
}

TEST_CASE("counts of many microbatches are those of each, added up", "[layout]") {
  const ColocatedShares shares(Grid({.tp = 2, .dp = 3}, Ranks(6)),
                               Grid({.pp = 3, .dp = 2}, Ranks(6)));
  CHECK(shares.Microbatch(8, shares.period() + 1) == shares.Microbatch(8, 1));
  for (const std::int64_t first : {0, 2}) {
    Counts sums(3, 0);
    for (std::int64_t microbatches = 0; microbatches < 9; ++microbatches) {
      CHECK(shares.Counts(8, first, microbatches) == sums);
      const Counts next = CountsOf(shares.Microbatch(8, first + microbatches));
      for (std::size_t e = 0; e < sums.size(); ++e) sums[e] += next[e];
    }
  }
  Counts billion = shares.Counts(8, 0, 1'000'000'000);
  CHECK(Spread(billion) <= 1);
}

}  // namespace
}  // namespace troupe
