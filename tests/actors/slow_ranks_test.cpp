#include "actors/slow_ranks.hpp"

#include <optional>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr SlowLimits kLimits{.factor = 2.0, .steps = 5};
/// Ranks 0, 1 and 2 do the same work, rank 3 other work, rank 4 other work again.
const std::map<int, PeerRanks> kPeers = {
    {0, {{1, 2}, true}}, {1, {{0, 2}, true}}, {2, {{0, 1}, true}}, {3, {}}, {4, {}}};

using RankTimes = std::map<int, double>;

/// Returns the step in [1, last] in which `rank` is named, if it is. The times of step s are
/// `times(s)`.
template <class TimesOf>
std::optional<int> StepOf(int rank, int last, TimesOf times, SlowLimits limits = kLimits) {
  SlowRanks slow(limits, kPeers);
  std::optional<int> named;
  for (int step = 1; step <= last; ++step) {
    for (const SlowRank& one : slow.OnStep(1.0, times(step))) {
      CHECK(one.rank == rank);
      CHECK_FALSE(named);  // it is named once
      named = step;
    }
  }
  return named;
}

RankTimes Even() { return {{0, 0.1}, {1, 0.11}, {2, 0.09}, {3, 0.2}, {4, 0.3}}; }

}  // namespace

TEST_CASE("a rank is slow next to its peers, also from the start", "[actors][slow_ranks]") {
  CHECK_FALSE(StepOf(1, 100, [](int) { return Even(); }));
  const auto from = [](int first, double factor) {
    return [=](int step) {
      RankTimes times = Even();
      if (step >= first) times[1] *= factor;
      return times;
    };
  };
  CHECK(StepOf(1, 100, from(1, 3.0)) == 7);  // the two steps of the start are not counted
  CHECK(StepOf(1, 100, from(50, 3.0)) == 54);
  CHECK_FALSE(StepOf(1, 100, from(50, 1.7)));
  CHECK_FALSE(StepOf(1, 100, from(50, 3.0), {.factor = 0.0, .steps = 5}));
  CHECK_FALSE(StepOf(1, 100, [&](int step) { return from(step % 5 == 0 ? 999 : 1, 3.0)(step); }));
}

TEST_CASE("a rank without peers is slow next to its first steps", "[actors][slow_ranks]") {
  const auto from = [](int first, double factor) {
    return [=](int step) {
      RankTimes times = Even();
      if (step >= first) times[3] *= factor;
      return times;
    };
  };
  CHECK(StepOf(3, 100, from(20, 2.5)) == 24);
  CHECK_FALSE(StepOf(3, 100, from(20, 1.9)));
  // From the start it cannot be seen.
  CHECK_FALSE(StepOf(3, 100, from(1, 2.5)));
  // Longer samples, or a machine that is busy: all ranks change.
  CHECK_FALSE(StepOf(3, 100, [](int step) {
    RankTimes times = Even();
    for (auto& [rank, own] : times) own *= step < 20 ? 1.0 : 4.0;
    return times;
  }));
}

TEST_CASE("ranks that are slow together with all their peers are found", "[actors][slow_ranks]") {
  SlowRanks slow(kLimits, {{0, {{1}}}, {1, {{0}}}, {2, {{3}}}, {3, {{2}}}});
  for (int step = 1; step <= 30; ++step) {
    const double factor = step < 20 ? 1.0 : 3.0;
    const auto named =
        slow.OnStep(1.0, {{0, 0.2}, {1, 0.21}, {2, 0.1 * factor}, {3, 0.11 * factor}});
    CHECK(named.size() == (step == 24 ? 2 : 0));
    CHECK(slow.SlowNow() == (step < 24 ? std::vector<int>{} : std::vector<int>{2, 3}));
    for (const SlowRank& one : named) {
      CHECK(one.rank >= 2);
      CHECK_FALSE(one.next_to_peers);
    }
  }
}

TEST_CASE("peers on another machine decide, whatever a rank did before", "[actors][slow_ranks]") {
  SlowRanks slow(kLimits, kPeers);
  for (int step = 1; step <= 40; ++step) {
    RankTimes times = Even();
    for (const int rank : {0, 1, 2}) times[rank] *= step < 20 ? 1.0 : 4.0;  // more images
    CHECK(slow.OnStep(1.0, times).empty());
  }
}

TEST_CASE("a rank is not slow because most others became faster", "[actors][slow_ranks]") {
  SlowRanks slow(kLimits, kPeers);
  for (int step = 1; step <= 40; ++step) {
    RankTimes times = Even();
    for (const int rank : {0, 1, 2, 3}) times[rank] *= step < 20 ? 1.0 : 0.25;
    CHECK(slow.OnStep(1.0, times).empty());
  }
}

TEST_CASE("a step that took long for another reason ends no row", "[actors][slow_ranks]") {
  SlowRanks slow(kLimits, kPeers);
  int named = 0;
  for (int step = 1; step <= 40; ++step) {
    RankTimes times = Even();
    if (step > 10) times[1] *= 3.0;
    const double step_s = step % 3 == 0 ? 100.0 : 1.0;  // a checkpoint
    if (!slow.OnStep(step_s, times).empty()) named = step;
  }
  CHECK(named == 17);  // 11, 13, 14, 16 and 17
}

TEST_CASE("what a slow rank costs next to the step is enough to be named", "[actors][slow_ranks]") {
  SlowRanks slow(kLimits, {{0, {{1}}}, {1, {{0}}}});
  for (int step = 0; step < 50; ++step) {
    CHECK(slow.OnStep(1.0, {{0, 0.01}, {1, 0.04}}).empty());
  }
}

TEST_CASE("the medians of the slow steps are the evidence", "[actors][slow_ranks]") {
  SlowRanks slow(kLimits, kPeers);
  std::vector<SlowRank> named;
  for (int step = 1; step <= 7; ++step) {
    RankTimes times = Even();
    times[2] = 0.4 + 0.1 * step;
    times[1] = 0.1 + 0.01 * step;
    named = slow.OnStep(2.0, times);
  }
  REQUIRE(named.size() == 1);
  CHECK(named[0].own_s == Approx(0.9));     // of step 5, among steps 3 to 7
  CHECK(named[0].usual_s == Approx(0.15));  // the larger of two peers, in the same step
  CHECK(named[0].steps == 5);
  CHECK(named[0].next_to_peers);
}

}  // namespace troupe
