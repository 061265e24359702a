#include "schedule/simulate.hpp"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

StageGraph Chain(int stages) { return StageGraph({{"language", stages}}, {}); }

/// Encoders pp2 and pp1 into a language model pp3: figure 4(a) of arXiv:2605.27678.
StageGraph Figure4a() {
  return StageGraph({{"encoder1", 2}, {"encoder2", 1}, {"language", 3}}, {{0, 2, 8}, {1, 2, 8}});
}

Simulation Run(const StageGraph& graph, std::int64_t forward_ns, std::int64_t backward_ns,
               std::int64_t microbatches) {
  return Simulate(graph, OneForwardOneBackward(LimitsOf(graph)),
                  EqualDurations(forward_ns, backward_ns), microbatches);
}

std::string OrderText(const Simulation& simulation, int stage) {
  return ToString(simulation.OrderOf(stage));
}

}  // namespace

TEST_CASE("a chain takes (m + p - 1)(f + b), the textbook makespan", "[schedule]") {
  for (const int stages : {1, 2, 3, 4, 8, 16}) {
    for (const int microbatches : {1, 2, 3, 8, 16, 33}) {
      for (const auto& [forward, backward] : {std::pair{5, 5}, {5, 10}, {7, 3}}) {
        INFO(stages << " stages, " << microbatches << " microbatches, " << forward << " + "
                    << backward);
        CHECK(Run(Chain(stages), forward, backward, microbatches).makespan_ns ==
              (microbatches + stages - 1) * (forward + backward));
      }
    }
  }
}

TEST_CASE("every stage of a chain runs textbook 1F1B", "[schedule]") {
  const Simulation simulation = Run(Chain(3), 5, 10, 5);
  CHECK(OrderText(simulation, 0) == "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  CHECK(OrderText(simulation, 1) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  CHECK(OrderText(simulation, 2) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST_CASE("passes of one stage never overlap and wait for what they need", "[schedule]") {
  const StageGraph graph = Figure4a();
  const Simulation simulation = Simulate(
      graph, OneForwardOneBackward(LimitsOf(graph)),
      [](int stage, const Pass& pass) { return 3 + (stage * 5 + pass.unit * 7) % 11; }, 9);
  const auto end_of = [&](int stage, const Pass& pass) {
    for (const TimedPass& timed : simulation.stages[static_cast<std::size_t>(stage)]) {
      if (timed.pass == pass) return timed.end_ns;
    }
    FAIL(ToString(pass) << " of stage " << stage << " never ran");
    return std::int64_t{0};
  };
  for (std::size_t stage = 0; stage < simulation.stages.size(); ++stage) {
    std::int64_t free_ns = 0;
    CHECK(simulation.stages[stage].size() == 18);
    for (const TimedPass& timed : simulation.stages[stage]) {
      CHECK(timed.begin_ns >= free_ns);
      free_ns = timed.end_ns;
      const bool forward = timed.pass.kind == PassKind::kForward;
      for (const int link : forward ? graph.stages()[stage].in : graph.stages()[stage].out) {
        const StageLink& over = graph.links()[static_cast<std::size_t>(link)];
        CHECK(end_of(forward ? over.from : over.to, timed.pass) <= timed.begin_ns);
      }
    }
  }
}

TEST_CASE("a short branch parallel to a long one costs a graph nothing", "[schedule]") {
  // The longest path of figure 4(a) has 5 stages; encoder 2 hides behind encoder 1.
  CHECK(Run(Figure4a(), 5, 10, 16).makespan_ns == (16 + 5 - 1) * 15);
}

TEST_CASE("a limit below the distance to the sink makes the round longer", "[schedule]") {
  const StageGraph graph = Chain(4);
  const auto duration = EqualDurations(5, 5);
  const auto full = Simulate(graph, OneForwardOneBackward(LimitsOf(graph)), duration, 16);
  const auto held = Simulate(graph, OneForwardOneBackward({1, 3, 2, 1}), duration, 16);
  CHECK(full.makespan_ns == 190);
  CHECK(held.makespan_ns == 16 * 4 * 10);  // one microbatch at a time walks there and back
  CHECK(OrderText(held, 0).substr(0, 11) == "F0 B0 F1 B1");
}

TEST_CASE("the slowest stage sets the pace", "[schedule]") {
  const StageGraph graph = Chain(3);
  const auto slow_middle = [](int stage, const Pass&) -> std::int64_t {
    return stage == 1 ? 9 : 1;
  };
  // Stage 1 is never idle between its first pass and its last: one forward before, one backward
  // after, and both of the sink where nothing else is there to run at either end.
  const auto simulation = Simulate(graph, OneForwardOneBackward(LimitsOf(graph)), slow_middle, 20);
  const auto& middle = simulation.stages[1];
  CHECK(middle.back().end_ns - middle.front().begin_ns <= 20 * 18 + 2);
  CHECK(simulation.makespan_ns == middle.back().end_ns + 1);
}

TEST_CASE("passes that take no time end, and no microbatches take no time", "[schedule]") {
  CHECK(Run(Figure4a(), 0, 0, 8).makespan_ns == 0);
  CHECK(Run(Figure4a(), 0, 0, 8).OrderOf(0).size() == 16);
  CHECK(Run(Figure4a(), 5, 5, 0).makespan_ns == 0);
  CHECK(Run(Figure4a(), 5, 5, 0).OrderOf(0).empty());
}

TEST_CASE("a simulation refuses what cannot run", "[schedule]") {
  const StageGraph graph = Chain(2);
  const auto duration = EqualDurations(5, 5);
  CHECK_THROWS_WITH(Simulate(graph, OneForwardOneBackward({1}), duration, 4),
                    "simulation: expected 2 limits, got 1");
  CHECK_THROWS_WITH(Simulate(graph, OneForwardOneBackward({0, 1}), duration, 4),
                    "simulation: a limit is 0, expected at least 1");
  CHECK_THROWS_WITH(Simulate(graph, OneForwardOneBackward({2, 1}), duration, -1),
                    "simulation: -1 microbatches");
  CHECK_THROWS_WITH(Simulate(graph, OneForwardOneBackward({2, 1}), EqualDurations(-5, 5), 1),
                    "simulation: F0 of language.s0 takes -5 ns");
}

TEST_CASE("a link that takes time delays what crosses it, there and back", "[schedule]") {
  const StageGraph graph({{"a", 1}, {"b", 1}}, {{0, 1, 4}});
  Schedule schedule = OneForwardOneBackward(LimitsOf(graph));
  const auto makespan = [&] {
    return Simulate(graph, schedule, EqualDurations(10, 20), 1).makespan_ns;
  };
  CHECK(makespan() == 60);
  schedule.link_ns = {7};
  CHECK(makespan() == 74);
  schedule.link_ns = {0};
  CHECK(makespan() == 60);
  schedule.link_ns = {1, 2};
  CHECK_THROWS_WITH(makespan(), "simulation: expected 1 times of links, got 2");
  schedule.link_ns = {-1};
  CHECK_THROWS_WITH(makespan(), "simulation: a link takes -1 ns");
}

}  // namespace troupe
