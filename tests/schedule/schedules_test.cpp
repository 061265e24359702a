// GPipe, zero bubble and interleaved 1F1B: what they cost and what they keep, by simulation.
#include <algorithm>

#include <catch2/catch.hpp>

#include "schedule/schedule.hpp"
#include "schedule/simulate.hpp"

namespace troupe {
namespace {

StageGraph Chain(int stages) { return StageGraph({{"language", stages}}, {}); }

Schedule AllGpipe(int stages) {
  Schedule schedule;
  schedule.rules.assign(static_cast<std::size_t>(stages), {.kind = RuleKind::kGpipe});
  return schedule;
}

Schedule ZbH1(const StageGraph& graph) { return {.rules = ZbH1Rules(LimitsOf(graph))}; }

Schedule Interleaved(int pp, int chunks, std::int64_t microbatches) {
  Schedule schedule;
  schedule.orders = InterleavedOrders(pp, chunks, microbatches);
  for (int stage = 0; stage < pp * chunks; ++stage) {
    schedule.devices.push_back({stage % pp});
    schedule.rules.push_back(
        OrderedRule(schedule.orders[static_cast<std::size_t>(stage % pp)], stage));
  }
  return schedule;
}

std::string OrderText(const Simulation& simulation, int stage) {
  return ToString(simulation.OrderOf(stage));
}

}  // namespace

TEST_CASE("gpipe runs all forwards first, costs the bubble of 1f1b and keeps every microbatch",
          "[schedule]") {
  const auto simulation = Simulate(Chain(3), AllGpipe(3), EqualDurations(5, 10), 4);
  CHECK(OrderText(simulation, 0) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(OrderText(simulation, 2) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(simulation.makespan_ns == (4 + 3 - 1) * 15);
  CHECK(PeakInFlight(simulation, 0) == 4);
  CHECK(PeakInFlight(simulation, 2) == 4);
}

TEST_CASE("zb-h1 on a chain has a third of the bubble of 1f1b at the memory of its first stage",
          "[schedule]") {
  for (const int stages : {1, 2, 3, 4, 8}) {
    for (const std::int64_t microbatches : {stages, 2 * stages, 2 * stages + 3, 5 * stages}) {
      INFO(stages << " stages, " << microbatches << " microbatches");
      const StageGraph graph = Chain(stages);
      const auto simulation = Simulate(graph, ZbH1(graph), EqualDurations(7, 7, 7), microbatches);
      CHECK(simulation.blocked.empty());
      CHECK(simulation.makespan_ns == microbatches * 21 + (stages - 1) * 7);
      for (int stage = 0; stage < stages; ++stage) {
        CHECK(PeakInFlight(simulation, stage) == std::min<std::int64_t>(stages, microbatches));
      }
    }
  }
}

TEST_CASE("zb-h1 keeps its bubble when every tensor takes time", "[schedule]") {
  // A rule that fills a short wait with weights loses whole passes here.
  const StageGraph graph = Chain(4);
  Schedule schedule = ZbH1(graph);
  schedule.link_ns.assign(graph.links().size(), 10);
  const auto simulation = Simulate(graph, schedule, EqualDurations(1000, 1000, 1000), 16);
  const std::int64_t books_ns = 16 * 3000 + 3 * 1000;
  CHECK(simulation.makespan_ns - books_ns <= 2 * (16 + 4) * 10);
  CHECK(simulation.OrderOf(3) ==
        Simulate(graph, ZbH1(graph), EqualDurations(7, 7, 7), 16).OrderOf(3));
}

TEST_CASE("zb-h1 fills with weights what forwards and backwards leave", "[schedule]") {
  const StageGraph graph = Chain(3);
  const auto simulation = Simulate(graph, ZbH1(graph), EqualDurations(5, 5, 5), 5);
  CHECK(OrderText(simulation, 0) == "F0 F1 F2 B0 W0 F3 B1 W1 F4 B2 W2 B3 W3 B4 W4");
  CHECK(OrderText(simulation, 2) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 W3 W4");
}

TEST_CASE("interleaving divides the bubble of 1f1b by the number of chunks", "[schedule]") {
  for (const int pp : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3}) {
      for (const std::int64_t microbatches : {pp, 2 * pp, 5 * pp}) {
        INFO("pp " << pp << ", " << chunks << " chunks, " << microbatches << " microbatches");
        const auto simulation = Simulate(Chain(pp * chunks), Interleaved(pp, chunks, microbatches),
                                         EqualDurations(4, 8), microbatches);
        CHECK(simulation.blocked.empty());
        CHECK(simulation.makespan_ns == (microbatches * chunks + pp - 1) * 12);
      }
    }
  }
}

TEST_CASE("interleaved orders are those of Megatron-LM", "[schedule]") {
  const auto orders = InterleavedOrders(2, 2, 4);
  const auto text = [](const DeviceOrder& order) {
    std::string all;
    for (const StagePass& at : order) {
      all += (all.empty() ? "" : " ") + std::to_string(at.stage) + ToString(at.pass);
    }
    return all;
  };
  CHECK(text(orders[0]) == "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  CHECK(text(orders[1]) == "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
  CHECK_THROWS_WITH(InterleavedOrders(2, 2, 3),
                    Catch::Contains("expected a multiple of 2 microbatches"));
}

TEST_CASE("a device with an order holds a command back until its turn", "[schedule]") {
  // Both stages of the device could run F1 of stage 0 at once; the order says F0 of stage 1 first.
  Schedule schedule;
  schedule.devices = {{0}, {0}};
  const auto f = PassKind::kForward;
  const auto b = PassKind::kBackward;
  schedule.orders = {{{0, {f, 0}},
                      {1, {f, 0}},
                      {1, {b, 0}},
                      {0, {f, 1}},
                      {0, {b, 0}},
                      {1, {f, 1}},
                      {1, {b, 1}},
                      {0, {b, 1}}}};
  for (const int stage : {0, 1}) schedule.rules.push_back(OrderedRule(schedule.orders[0], stage));
  const auto simulation = Simulate(Chain(2), schedule, EqualDurations(5, 10), 2);
  CHECK(simulation.makespan_ns == 4 * 5 + 4 * 10);
  CHECK(simulation.stages[0][1] == TimedPass{{f, 1}, 20, 25});
}

TEST_CASE("stages that share a device never run at one time", "[schedule]") {
  Schedule schedule = OneForwardOneBackward(LimitsOf(Chain(4)));
  schedule.devices = {{0}, {1}, {0}, {1}};
  const auto simulation = Simulate(Chain(4), schedule, EqualDurations(3, 5), 6);
  CHECK(simulation.blocked.empty());
  for (const auto& [a, b] : {std::pair{0, 2}, {1, 3}}) {
    auto passes = simulation.stages[static_cast<std::size_t>(a)];
    const auto& others = simulation.stages[static_cast<std::size_t>(b)];
    passes.insert(passes.end(), others.begin(), others.end());
    std::ranges::sort(passes, {}, &TimedPass::begin_ns);
    REQUIRE(passes.size() == 24);
    for (std::size_t i = 1; i < passes.size(); ++i) {
      CHECK(passes[i - 1].end_ns <= passes[i].begin_ns);
    }
  }
}

TEST_CASE("orders that wait for each other end in a simulation that names who lacks what",
          "[schedule]") {
  Schedule schedule;
  const auto f = PassKind::kForward;
  const auto b = PassKind::kBackward;
  schedule.rules = {{.kind = RuleKind::kOrdered, .order = {{f, 0}, {b, 0}, {f, 1}, {b, 1}}},
                    {.kind = RuleKind::kOrdered, .order = {{f, 0}, {f, 1}, {b, 0}, {b, 1}}}};
  const auto simulation = Simulate(Chain(2), schedule, EqualDurations(5, 10), 2);
  REQUIRE(simulation.blocked.size() == 2);
  CHECK(ToString(simulation.blocked[0].next) == "B0");
  CHECK(simulation.blocked[0].lacks == "its gradient");
  CHECK(ToString(simulation.blocked[1].next) == "F1");
  CHECK(simulation.blocked[1].lacks == "its activation");
}

TEST_CASE("a stage that runs no backward has its answer when the next forward ends", "[schedule]") {
  Schedule schedule = AllGpipe(2);
  schedule.rules[0] = {.limit = 1};
  CHECK_FALSE(Simulate(Chain(2), schedule, EqualDurations(5, 10), 3).blocked.empty());
  schedule.runs_backward = {false, true};
  const auto simulation = Simulate(Chain(2), schedule, EqualDurations(5, 10), 3);
  CHECK(simulation.blocked.empty());
  CHECK(OrderText(simulation, 0) == "F0 F1 F2");
  CHECK(simulation.stages[0][1].begin_ns == 10);
}

TEST_CASE("orders that no pipeline can follow are refused with the pass that is wrong",
          "[schedule]") {
  auto orders = InterleavedOrders(2, 2, 4);
  CHECK(WhyNoOrders(orders, 4, 4).empty());
  SECTION("on the wrong rank") {
    std::swap(orders[0], orders[1]);
    CHECK(WhyNoOrders(orders, 4, 4) == "rank 0: F0 of stage 1: that stage is on rank 1");
  }
  SECTION("out of order") {
    std::swap(orders[0][0], orders[0][1]);
    CHECK(WhyNoOrders(orders, 4, 4) ==
          "rank 0: F1 of stage 0: expected F0 first, as units go in order");
  }
  SECTION("a backward before its forward") {
    std::swap(orders[1][2], orders[1][3]);
    CHECK(WhyNoOrders(orders, 4, 4) == "rank 1: B0 of stage 3: its forward comes later");
  }
  SECTION("one is missing") {
    orders[0].pop_back();
    CHECK(WhyNoOrders(orders, 4, 4) ==
          "stage 0: expected 4 forwards and backwards, and as many weights or none, got 4, 3 "
          "and 0");
  }
}

}  // namespace troupe
