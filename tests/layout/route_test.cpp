#include "layout/route.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "layout/colocated_shares.hpp"

using Catch::Matchers::Message;

namespace troupe {
namespace {

/// A boundary tensor by shard, every row a number that no other row has.
using Rows = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t kRowsApart = 1000;  ///< more than any sample has, so tags never meet
constexpr std::int64_t kUnwritten = -1;

std::vector<std::int64_t> SamplesOf(const std::vector<Interval>& intervals) {
  std::vector<std::int64_t> samples;
  for (const Interval& interval : intervals) {
    for (std::int64_t n = interval.begin; n < interval.end; ++n) samples.push_back(n);
  }
  return samples;
}

Rows Tagged(const std::vector<std::int64_t>& rows_per_sample, const Assignment& assignment) {
  Rows rows(assignment.size());
  for (std::size_t shard = 0; shard < assignment.size(); ++shard) {
    for (const std::int64_t n : SamplesOf(assignment[shard])) {
      for (std::int64_t row = 0; row < rows_per_sample[static_cast<std::size_t>(n)]; ++row) {
        rows[shard].push_back(n * kRowsApart + row);
      }
    }
  }
  return rows;
}

/// Moves rows as the boundary leaders do; each destination row must be written once.
Rows Apply(const Route& route, const Rows& source) {
  Rows destination;
  for (const std::int64_t rows : route.destination_rows) {
    destination.emplace_back(static_cast<std::size_t>(rows), kUnwritten);
  }
  for (const Transfer& t : route.transfers) {
    REQUIRE(t.source_rows.size() == t.destination_rows.size());
    for (std::int64_t row = 0; row < t.source_rows.size(); ++row) {
      auto& to = destination.at(static_cast<std::size_t>(t.destination))
                     .at(static_cast<std::size_t>(t.destination_rows.begin + row));
      REQUIRE(to == kUnwritten);
      to = source.at(static_cast<std::size_t>(t.source))
               .at(static_cast<std::size_t>(t.source_rows.begin + row));
    }
  }
  return destination;
}

/// Each transfer carries rows of its own samples, all of those rows, and is in order.
void CheckTransfers(const Route& route, const std::vector<std::int64_t>& rows_per_sample) {
  const Transfer* last = nullptr;
  for (const Transfer& t : route.transfers) {
    REQUIRE_FALSE(t.source_rows.empty());
    std::int64_t rows = 0;
    for (std::int64_t n = t.samples.begin; n < t.samples.end; ++n) {
      rows += rows_per_sample[static_cast<std::size_t>(n)];
    }
    REQUIRE(rows == t.source_rows.size());
    if (last != nullptr && last->destination == t.destination) {
      REQUIRE(last->destination_rows.end == t.destination_rows.begin);
    } else {
      REQUIRE(t.destination_rows.begin == 0);
      REQUIRE((last == nullptr || last->destination < t.destination));
    }
    last = &t;
  }
}

void CheckRoute(const std::vector<std::int64_t>& rows_per_sample, const Assignment& source,
                const Assignment& destination) {
  const Route route = MakeRoute(rows_per_sample, source, destination);
  CheckTransfers(route, rows_per_sample);
  const Rows sent = Tagged(rows_per_sample, source);
  const Rows received = Apply(route, sent);
  REQUIRE(received == Tagged(rows_per_sample, destination));
  const Route back = Inverse(route);
  CheckTransfers(back, rows_per_sample);
  REQUIRE(Apply(back, received) == sent);
  REQUIRE(Inverse(back).transfers == route.transfers);
}

std::vector<std::int64_t> RandomRows(std::mt19937& random, std::int64_t num_samples) {
  std::vector<std::int64_t> rows;
  for (std::int64_t n = 0; n < num_samples; ++n) {
    rows.push_back(random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % 6));
  }
  return rows;
}

/// All samples in random order, cut at random places: nothing an even layout would make.
Assignment RandomAssignment(std::mt19937& random, std::int64_t num_samples, std::size_t parts) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(num_samples));
  std::iota(samples.begin(), samples.end(), 0);
  std::shuffle(samples.begin(), samples.end(), random);
  Assignment assignment(parts);
  for (const std::int64_t n : samples) assignment[random() % parts].push_back({n, n + 1});
  return assignment;
}

void CheckHeldOnce(const Assignment& assignment, std::int64_t num_samples) {
  std::vector<std::int64_t> all;
  for (const std::vector<Interval>& shard : assignment) {
    for (const Interval& interval : shard) REQUIRE_FALSE(interval.empty());
    for (const std::int64_t n : SamplesOf(shard)) all.push_back(n);
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(static_cast<std::size_t>(num_samples));
  std::iota(expected.begin(), expected.end(), 0);
  REQUIRE(all == expected);
}

TEST_CASE("parts of a count are adjacent, cover it and differ by at most one", "[layout]") {
  for (std::int64_t count = 0; count <= 20; ++count) {
    for (int parts = 1; parts <= 7; ++parts) {
      std::int64_t end = 0;
      for (int index = 0; index < parts; ++index) {
        const Interval part = PartOf(count, parts, index);
        REQUIRE(part.begin == end);
        REQUIRE(part.begin == index * count / parts);
        REQUIRE(part.size() >= count / parts);
        REQUIRE(part.size() <= (count + parts - 1) / parts);
        end = part.end;
      }
      REQUIRE(end == count);
    }
  }
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  CHECK(PartOf(kLargest, 7, 6).end == kLargest);
}

TEST_CASE("parts that do not exist are refused", "[layout]") {
  CHECK_THROWS_MATCHES(PartOf(5, 2, 2), LayoutError,
                       Message("part 2 of 2 of 5 items does not exist"));
  CHECK_THROWS_AS(PartOf(5, 2, -1), LayoutError);
  CHECK_THROWS_AS(PartOf(5, 0, 0), LayoutError);
  CHECK_THROWS_AS(PartOf(-1, 1, 0), LayoutError);
  CHECK_THROWS_AS(EvenAssignment(4, 0), LayoutError);
  CHECK_THROWS_MATCHES(WindowAssignment(4, 0, 1), LayoutError,
                       Message("window is 0, expected at least 1"));
}

TEST_CASE("intervals without a common part intersect in an empty one", "[layout]") {
  CHECK(Intersect({2, 8}, {5, 11}) == Interval{5, 8});
  CHECK(Intersect({5, 11}, {2, 8}) == Interval{5, 8});
  CHECK(Intersect({0, 3}, {3, 6}).empty());
  CHECK(Intersect({0, 3}, {5, 6}).size() == 0);
}

TEST_CASE("routes between all even dp sizes deliver the destination's order", "[layout]") {
  std::mt19937 random(11);
  for (int a = 1; a <= 6; ++a) {
    for (int b = 1; b <= 6; ++b) {
      for (const std::int64_t num_samples : {0, 1, 2, 5, 7, 12, 60}) {
        CheckRoute(RandomRows(random, num_samples), EvenAssignment(num_samples, a),
                   EvenAssignment(num_samples, b));
      }
    }
  }
}

TEST_CASE("even routes need a + b - gcd(a, b) transfers", "[layout]") {
  std::mt19937 random(12);
  for (int a = 1; a <= 6; ++a) {
    for (int b = 1; b <= 6; ++b) {
      const auto most = static_cast<std::size_t>(a + b - std::gcd(a, b));
      std::vector<std::int64_t> rows;
      for (std::int64_t n = 0; n < 2 * std::lcm(a, b); ++n) {
        rows.push_back(1 + static_cast<std::int64_t>(random() % 5));
      }
      const auto num_samples = static_cast<std::int64_t>(rows.size());
      CHECK(MakeRoute(rows, EvenAssignment(num_samples, a), EvenAssignment(num_samples, b))
                .transfers.size() == most);
      for (std::int64_t count = 0; count < 30; ++count) {
        const Assignment from = EvenAssignment(count, a);
        const Assignment to = EvenAssignment(count, b);
        REQUIRE(MakeRoute(RandomRows(random, count), from, to).transfers.size() <= most);
      }
    }
  }
}

TEST_CASE("a 3 to 2 route cuts the middle shard by its samples' rows", "[layout]") {
  const std::vector<std::int64_t> rows = {5, 0, 3, 2, 7, 1};
  const Route route = MakeRoute(rows, EvenAssignment(6, 3), EvenAssignment(6, 2));
  CHECK(route.transfers == std::vector<Transfer>{{0, 0, {0, 2}, {0, 5}, {0, 5}},
                                                 {1, 0, {2, 3}, {0, 3}, {5, 8}},
                                                 {1, 1, {3, 4}, {3, 5}, {0, 2}},
                                                 {2, 1, {4, 6}, {0, 8}, {2, 10}}});
  CHECK(route.source_rows == std::vector<std::int64_t>{5, 5, 8});
  CHECK(route.destination_rows == std::vector<std::int64_t>{8, 10});
}

TEST_CASE("a 1 to 4 route is a narrow of the one source", "[layout]") {
  const Route route =
      MakeRoute(std::vector<std::int64_t>{2, 3, 4, 5}, EvenAssignment(4, 1), EvenAssignment(4, 4));
  CHECK(route.transfers == std::vector<Transfer>{{0, 0, {0, 1}, {0, 2}, {0, 2}},
                                                 {0, 1, {1, 2}, {2, 5}, {0, 3}},
                                                 {0, 2, {2, 3}, {5, 9}, {0, 4}},
                                                 {0, 3, {3, 4}, {9, 14}, {0, 5}}});
}

TEST_CASE("a microbatch without rows needs no transfer", "[layout]") {
  const Route route =
      MakeRoute(std::vector<std::int64_t>{0, 0, 0, 0}, EvenAssignment(4, 4), EvenAssignment(4, 2));
  CHECK(route.transfers.empty());
  CHECK(route.source_rows == std::vector<std::int64_t>{0, 0, 0, 0});
  CHECK(route.destination_rows == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("routes between arbitrary assignments deliver the destination's order", "[layout]") {
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    const auto num_samples = static_cast<std::int64_t>(random() % 25);
    const Assignment from = RandomAssignment(random, num_samples, 1 + random() % 6);
    const Assignment to = RandomAssignment(random, num_samples, 1 + random() % 6);
    CheckRoute(RandomRows(random, num_samples), from, to);
  }
}

TEST_CASE("a sample held by no shard or by two is refused on either side", "[layout]") {
  const std::vector<std::int64_t> rows = {1, 1, 1};
  const Assignment whole = {{{0, 3}}};
  CHECK_THROWS_MATCHES(MakeRoute(rows, {{{0, 1}}, {{2, 3}}}, whole), LayoutError,
                       Message("sample 1 is held by no source shard"));
  CHECK_THROWS_MATCHES(MakeRoute(rows, whole, {{{0, 2}}, {}, {{1, 3}}}), LayoutError,
                       Message("sample 1 is held by destination shards 0 and 2, expected one"));
  CHECK_THROWS_AS(MakeRoute(rows, {{{0, 3}, {1, 2}}}, whole), LayoutError);
  CHECK_THROWS_MATCHES(
      MakeRoute(rows, whole, {{{0, 4}}}), LayoutError,
      Message("destination shard 0 holds samples 0 to 4, expected them within 0 to 3"));
  CHECK_THROWS_AS(MakeRoute(rows, whole, {{{0, 3}, {3, 2}}}), LayoutError);
  CHECK_THROWS_AS(MakeRoute(rows, {{{-1, 3}}}, whole), LayoutError);
  CHECK_THROWS_MATCHES(MakeRoute(std::vector<std::int64_t>{1, -2, 1}, whole, whole), LayoutError,
                       Message("sample 1 has -2 rows, expected 0 or more"));
}

TEST_CASE("a window lays microbatches one behind the other in every shard", "[layout]") {
  CHECK(WindowAssignment(4, 3, 2) ==
        Assignment{{{0, 2}, {4, 6}, {8, 10}}, {{2, 4}, {6, 8}, {10, 12}}});
  CHECK(WindowAssignment(1, 2, 2) == Assignment{{}, {{0, 1}, {1, 2}}});
  CHECK(WindowAssignment(3, 1, 2) == EvenAssignment(3, 2));
  for (std::int64_t num_samples = 0; num_samples < 9; ++num_samples) {
    for (int parts = 1; parts <= 6; ++parts) {
      CheckHeldOnce(WindowAssignment(num_samples, 3, parts), 3 * num_samples);
    }
  }
}

std::vector<int> Ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// What each replica of a colocated encoder holds of the first `window` microbatches of a round.
Assignment ColocatedAssignment(const Grid& encoder, const Grid& language, std::int64_t num_samples,
                               int window) {
  return ColocatedShares(encoder, language).Window(num_samples, 0, window);
}

/// Every sample is encoded by a replica that shares a rank with the language replica it belongs to.
void CheckAtHome(const Grid& encoder, const Grid& language, std::int64_t num_samples, int window) {
  const Assignment held = ColocatedAssignment(encoder, language, num_samples, window);
  CheckHeldOnce(held, num_samples * window);
  for (int dp = 0; dp < encoder.layout().dp; ++dp) {
    std::set<int> homes;
    for (int pp = 0; pp < encoder.layout().pp; ++pp) {
      for (const int rank : encoder.StageRanks(pp, dp)) {
        homes.insert(language.CoordinatesOf(rank).dp);
      }
    }
    for (const std::int64_t n : SamplesOf(held[static_cast<std::size_t>(dp)])) {
      int owner = 0;
      while (PartOf(num_samples, language.layout().dp, owner).end <= n % num_samples) ++owner;
      REQUIRE(homes.count(owner) == 1);
    }
  }
}

TEST_CASE("colocated encoders hold the samples of the language replica on their ranks",
          "[layout]") {
  // Replica 0 of the language model is ranks 0, 1, 4, 5; replica 1 is 2, 3, 6, 7.
  const Grid language({.tp = 2, .pp = 2, .dp = 2}, Ranks(8));
  const Grid encoder({.dp = 8}, Ranks(8));
  CHECK(ColocatedAssignment(encoder, language, 8, 2) == Assignment{{{0, 1}, {8, 9}},
                                                                   {{1, 2}, {9, 10}},
                                                                   {{4, 5}, {12, 13}},
                                                                   {{5, 6}, {13, 14}},
                                                                   {{2, 3}, {10, 11}},
                                                                   {{3, 4}, {11, 12}},
                                                                   {{6, 7}, {14, 15}},
                                                                   {{7, 8}, {15, 16}}});
}

TEST_CASE("an encoder replica over several language replicas takes all their samples", "[layout]") {
  const Grid language({.tp = 2, .dp = 4}, Ranks(8));
  CHECK(ColocatedAssignment(Grid({.tp = 4, .dp = 2}, Ranks(8)), language, 8, 2) ==
        WindowAssignment(8, 2, 2));
  // Here encoder replica 0 is ranks 0, 1, 4, 5: language replicas 0 and 2, which are not
  // neighbours.
  CHECK(ColocatedAssignment(Grid({.tp = 4, .dp = 2}, {0, 1, 4, 5, 2, 3, 6, 7}), language, 8, 2) ==
        Assignment{{{0, 2}, {4, 6}, {8, 10}, {12, 14}}, {{2, 4}, {6, 8}, {10, 12}, {14, 16}}});
}

TEST_CASE("equal grids and nested contiguous grids cut a window evenly", "[layout]") {
  const Grid language({.tp = 4, .dp = 2}, Ranks(8));
  for (const int dp : {1, 2, 4, 8}) {
    const Grid encoder({.tp = 8 / dp, .dp = dp}, Ranks(8));
    CHECK(ColocatedAssignment(encoder, language, 8, 3) == WindowAssignment(8, 3, dp));
  }
}

TEST_CASE("a straddling encoder replica takes its share of each side", "[layout]") {
  // Encoder replica 1 is ranks 2, 3: one rank of each language replica.
  const Grid language({.tp = 3, .dp = 2}, Ranks(6));
  const Grid encoder({.tp = 2, .dp = 3}, Ranks(6));
  CHECK(ColocatedAssignment(encoder, language, 12, 1) == Assignment{{{0, 4}}, {{4, 8}}, {{8, 12}}});
  // Here replica 0 is ranks 0, 3, so its two shares are apart.
  const Grid swapped({.tp = 2, .dp = 3}, {0, 3, 1, 2, 4, 5});
  CHECK(ColocatedAssignment(swapped, language, 12, 1) ==
        Assignment{{{0, 2}, {6, 8}}, {{2, 6}}, {{8, 12}}});
}

TEST_CASE("colocated samples stay at home in all layouts of 12 ranks", "[layout]") {
  std::vector<Layout> layouts;
  for (int tp = 1; tp <= 12; ++tp) {
    for (int pp = 1; tp * pp <= 12; ++pp) {
      if (12 % (tp * pp) == 0) layouts.push_back({.tp = tp, .pp = pp, .dp = 12 / (tp * pp)});
    }
  }
  std::mt19937 random(14);
  for (const Layout& inner : layouts) {
    for (const Layout& outer : layouts) {
      std::vector<int> ranks = Ranks(12);
      std::shuffle(ranks.begin(), ranks.end(), random);
      for (const std::int64_t num_samples : {1, 5, 24}) {
        CheckAtHome(Grid(inner, Ranks(12)), Grid(outer, Ranks(12)), num_samples, 2);
        CheckAtHome(Grid(inner, ranks), Grid(outer, Ranks(12)), num_samples, 2);
      }
    }
  }
}

TEST_CASE("the colocated route of a window undoes itself and delivers in window order",
          "[layout]") {
  std::mt19937 random(15);
  const Grid language({.tp = 2, .pp = 2, .dp = 2}, Ranks(8));
  for (const Layout& layout : {Layout{.dp = 8}, Layout{.tp = 4, .dp = 2}, Layout{.tp = 8}}) {
    const Grid encoder(layout, Ranks(8));
    CheckRoute(RandomRows(random, 24), ColocatedAssignment(encoder, language, 8, 3),
               WindowAssignment(8, 3, 2));
  }
}

TEST_CASE("a colocated assignment needs grids on the same ranks", "[layout]") {
  CHECK_THROWS_MATCHES(ColocatedAssignment(Grid({}, {0}), Grid({}, {1}), 4, 1), LayoutError,
                       Message("colocated grids share no rank, expected the same ranks"));
  CHECK_THROWS_AS(ColocatedAssignment(Grid({}, {0}), Grid({.dp = 2}, {0, 1}), 4, 1), LayoutError);
}

}  // namespace
}  // namespace troupe
