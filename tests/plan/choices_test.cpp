// The search against plain enumeration.
#include "plan/search/choices.hpp"

#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// Calls `take` with every choice for a sink that fits.
template <class Take>
void ForEach(const ChoiceProblem& problem, const SinkOption& sink, Take take) {
  const auto modules = problem.options_of(sink.group);
  std::vector<std::size_t> at(modules.size(), 0);
  bool more = true;
  for (const auto& options : modules) more = more && !options.empty();
  while (more) {
    std::vector<const RunOption*> chosen;
    int ranks = sink.own.ranks;
    double bytes = 0.0;
    for (std::size_t m = 0; m < modules.size(); ++m) {
      chosen.push_back(&modules[m][at[m]]);
      ranks += chosen.back()->ranks;
      bytes += chosen.back()->memory_bytes;
    }
    if (ranks <= problem.max_ranks && bytes <= sink.free_bytes) {
      take(Choice{.options = at, .ranks = ranks, .step_s = StepTime(problem, sink, chosen)});
    }
    std::size_t m = 0;
    while (m < modules.size() && ++at[m] == modules[m].size()) at[m++] = 0;
    more = m < modules.size();
  }
}

/// Calls `take` with every choice that fits.
template <class Take>
void ForEach(const ChoiceProblem& problem, Take take) {
  for (std::size_t set = 0; set < problem.sets_s.size(); ++set) {
    std::size_t number = 0;
    for (const SinkOption& sink : problem.sinks_of(set)) {
      ForEach(problem, sink, [&](Choice each) {
        each.set = set;
        each.sink = number;
        take(each);
      });
      ++number;
    }
  }
}

/// Few values, so that there are ties.
ChoiceProblem RandomProblem(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  ChoiceProblem problem;
  problem.max_ranks = 4 + draw(30);
  problem.chain = draw(2) == 0;
  const auto option = [&] {
    RunOption made{.ranks = draw(8),
                   .first_s = 1.0 + draw(12),
                   .period_s = 1.0 + draw(9),
                   .fixed_s = 1.0 * draw(6),
                   .after_s = 1.0 * draw(5)};
    if (draw(3) == 0) made = {.ranks = 0, .memory_bytes = 1.0 + draw(5), .fixed_s = 5.0 + draw(30)};
    return made;
  };
  const int groups = 1 + draw(3);
  const int modules = draw(4);
  std::vector<std::vector<std::vector<RunOption>>> all;
  for (int group = 0; group < groups; ++group) {
    auto& lists = all.emplace_back(static_cast<std::size_t>(modules));
    for (auto& list : lists) {
      for (int i = 1 + draw(9); i > 0; --i) list.push_back(option());
    }
  }
  problem.options_of = [all](std::size_t group) { return all[group]; };
  std::vector<std::vector<SinkOption>> sets(static_cast<std::size_t>(1 + draw(3)));
  for (int sinks = 1 + draw(8); sinks > 0; --sinks) {
    SinkOption sink{.own = option(),
                    .units = 1 + draw(20),
                    .free_bytes = 1.0 * draw(9),
                    .group = static_cast<std::size_t>(draw(groups))};
    sink.own.ranks = 1 + draw(20);
    sets[random() % sets.size()].push_back(sink);
  }
  // Bounds that are met, close, or far.
  for (const auto& set : sets) {
    double least_s = INFINITY;
    for (const SinkOption& sink : set) least_s = std::min(least_s, StepTime(problem, sink, {}));
    problem.sets_s.push_back(least_s * (1.0 - 0.3 * draw(4)));
  }
  problem.sinks_of = [sets](std::size_t set) { return sets[set]; };
  return problem;
}

}  // namespace

TEST_CASE("the best choices are those of enumeration, on 500 random problems", "[plan]") {
  int solved = 0;
  for (int seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    const ChoiceProblem problem = RandomProblem(seed);
    std::map<std::pair<std::size_t, std::size_t>, double> fastest;  // by set and sink
    double best_s = INFINITY;
    ForEach(problem, [&](const Choice& each) {
      auto& least_s = fastest.try_emplace({each.set, each.sink}, INFINITY).first->second;
      least_s = std::min(least_s, each.step_s);
      best_s = std::min(best_s, each.step_s);
    });
    const auto found = BestChoices(problem, 1.2);
    if (best_s == INFINITY) {
      CHECK(found.empty());
      CHECK_THROWS_AS(FewestRanks(problem, 1.0), std::invalid_argument);
      continue;
    }
    ++solved;
    std::size_t within = 0;
    for (const auto& [sink, step_s] : fastest) within += step_s <= 1.2 * best_s ? 1U : 0U;
    REQUIRE(found.size() == within);
    CHECK(found.front().step_s == best_s);
    for (const Choice& each : found) CHECK(each.step_s == fastest.at({each.set, each.sink}));

    for (const double equal : {1.0, 1.1}) {
      int fewest = 1'000'000;
      double their_best_s = INFINITY;
      ForEach(problem, [&](const Choice& each) {
        if (each.step_s > equal * best_s * (1.0 + 1e-12)) return;
        if (each.ranks > fewest) return;
        if (each.ranks < fewest) their_best_s = INFINITY;
        fewest = each.ranks;
        their_best_s = std::min(their_best_s, each.step_s);
      });
      const Choice smallest = FewestRanks(problem, equal);
      CHECK(smallest.ranks == fewest);
      CHECK(smallest.step_s == their_best_s);
    }
  }
  CHECK(solved > 300);
}

TEST_CASE("a returned choice is one that fits, with its own time and ranks", "[plan]") {
  for (int seed = 501; seed <= 600; ++seed) {
    INFO("seed " << seed);
    const ChoiceProblem problem = RandomProblem(seed);
    for (const Choice& found : BestChoices(problem, 1.5, 1.05)) {
      bool known = false;
      ForEach(problem, [&](const Choice& each) {
        known = known || (each.set == found.set && each.sink == found.sink &&
                          each.options == found.options && each.ranks == found.ranks &&
                          each.step_s == found.step_s);
      });
      CHECK(known);
    }
  }
}

}  // namespace troupe
