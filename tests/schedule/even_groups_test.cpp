#include "schedule/even_groups.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "tests/schedule/random_times.hpp"

namespace troupe {
namespace {

using Costs = std::vector<std::vector<std::int64_t>>;

/// One column per group of the only kind, each with room for the same number of samples.
SampleColumns EqualGroups(int groups, std::int64_t samples) {
  SampleColumns columns;
  columns.group_of.emplace_back();
  for (int group = 0; group < groups; ++group) {
    columns.room.push_back(samples / groups);
    columns.group_of.front().push_back(group);
  }
  return columns;
}

/// The largest load of a group of that kind over the mean load.
double LargestOverMean(const Costs& costs, const SampleColumns& columns,
                       const std::vector<int>& column_of, std::size_t kind) {
  const auto& groups = columns.group_of[kind];
  std::vector<double> loads(At(std::ranges::max(groups) + 1));
  for (std::size_t sample = 0; sample < costs.size(); ++sample) {
    loads[At(groups[At(column_of[sample])])] += static_cast<double>(costs[sample][kind]);
  }
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  return std::ranges::max(loads) * static_cast<double>(loads.size()) / total;
}

/// Columns in the order of the samples: what a random order does.
std::vector<int> Drawn(const SampleColumns& columns) {
  std::vector<int> column_of;
  for (int column = 0; At(column) < columns.room.size(); ++column) {
    column_of.insert(column_of.end(), static_cast<std::size_t>(columns.room[At(column)]), column);
  }
  return column_of;
}

void CheckRoom(const SampleColumns& columns, const std::vector<int>& column_of) {
  for (int column = 0; At(column) < columns.room.size(); ++column) {
    CHECK(std::ranges::count(column_of, column) == columns.room[At(column)]);
  }
}

/// Varies by a factor of about 100.
std::int64_t SkewedCost(Random& random) {
  const std::int64_t root = 30 + random.Below(300);
  return root * root;
}

}  // namespace

TEST_CASE("groups get equal numbers of samples and nearly equal loads", "[schedule]") {
  Random random(7);
  for (const auto& [samples, groups] : {std::pair{64, 8}, {256, 32}, {1920, 64}}) {
    Costs costs;
    for (int i = 0; i < samples; ++i) costs.push_back({SkewedCost(random)});
    const SampleColumns columns = EqualGroups(groups, samples);
    const auto column_of = DivideEvenly(costs, columns);
    CheckRoom(columns, column_of);
    INFO(samples << " samples, " << groups << " groups");
    CHECK(LargestOverMean(costs, columns, column_of, 0) < 1.01);
    CHECK(LargestOverMean(costs, columns, Drawn(columns), 0) > 1.1);
  }
}

TEST_CASE("a small division is the one that longest first and swaps give", "[schedule]") {
  // Longest first with room for two each: 9 + 4, 8 + 5, 7 + 6 for sums of 13.
  CHECK(DivideEvenly({{4}, {9}, {5}, {8}, {6}, {7}}, EqualGroups(3, 6)) ==
        std::vector{0, 0, 1, 1, 2, 2});
  // The room forces 5 + 1 against 1 + 1 where 5 alone would do; nothing is better.
  CHECK(DivideEvenly({{1}, {5}, {1}, {1}}, EqualGroups(2, 4)) == std::vector{1, 0, 1, 0});
  // Longest first gives 13 + 9 + 6 and 12 + 11 + 1; the swap of 13 with 11 makes 26 and 26.
  CHECK(DivideEvenly({{13}, {12}, {11}, {9}, {6}, {1}}, EqualGroups(2, 6)) ==
        std::vector{1, 1, 0, 0, 0, 1});
}

TEST_CASE("every kind of cost is balanced over its own groups", "[schedule]") {
  // A language model on 2 replicas, an encoder on 4, another on 1; costs of the kinds are unrelated
  // and differ in unit.
  Random random(8);
  Costs costs;
  for (int i = 0; i < 96; ++i) {
    costs.push_back({SkewedCost(random), SkewedCost(random) * 1'000'000'000, random.Below(5)});
  }
  const SampleColumns columns{{24, 24, 24, 24}, {{0, 0, 1, 1}, {0, 1, 2, 3}, {0, 0, 0, 0}}};
  const auto column_of = DivideEvenly(costs, columns);
  CheckRoom(columns, column_of);
  CHECK(LargestOverMean(costs, columns, column_of, 0) < 1.02);
  CHECK(LargestOverMean(costs, columns, column_of, 1) < 1.02);
  CHECK(LargestOverMean(costs, columns, Drawn(columns), 1) > 1.1);
}

TEST_CASE("columns may have different room", "[schedule]") {
  Random random(9);
  Costs costs;
  for (int i = 0; i < 40; ++i) costs.push_back({SkewedCost(random)});
  const SampleColumns columns{{8, 12, 20, 0}, {{0, 1, 2, 2}}};
  const auto column_of = DivideEvenly(costs, columns);
  CheckRoom(columns, column_of);
  CHECK(LargestOverMean(costs, columns, column_of, 0) <
        LargestOverMean(costs, columns, Drawn(columns), 0));
}

TEST_CASE("equal and free samples stay in order, and nothing overflows", "[schedule]") {
  const SampleColumns columns = EqualGroups(4, 8);
  const std::vector<int> in_turn = {0, 1, 2, 3, 0, 1, 2, 3};
  CHECK(DivideEvenly(Costs(8, {5}), columns) == in_turn);
  CHECK(DivideEvenly(Costs(8, {0}), columns) == std::vector{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(DivideEvenly(Costs(8, {std::int64_t{1} << 59}), columns) == in_turn);
  CHECK(DivideEvenly({}, EqualGroups(2, 0)).empty());
}

TEST_CASE("a division that cannot be is refused", "[schedule]") {
  CHECK_THROWS_AS(DivideEvenly({{1}, {2}}, EqualGroups(2, 4)), std::invalid_argument);
  CHECK_THROWS_AS(DivideEvenly({{1}, {2, 3}}, EqualGroups(2, 2)), std::invalid_argument);
  CHECK_THROWS_AS(DivideEvenly({{1}, {-2}}, EqualGroups(2, 2)), std::invalid_argument);
  CHECK_THROWS_AS(DivideEvenly({{1}, {2}}, {{1, 1}, {{0}}}), std::invalid_argument);
}

}  // namespace troupe
