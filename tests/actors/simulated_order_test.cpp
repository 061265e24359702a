// The simulator against the actors: the same rule must give the same order in both.
#include <catch2/catch.hpp>

#include "schedule/simulate.hpp"
#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

Layout Pipeline(int pp) {
  Layout layout;
  layout.pp = pp;
  return layout;
}

void CheckOrders(JobFixture& job, const Config& config, std::int64_t microbatches) {
  REQUIRE(job.Run(config, TrainingRounds(1, microbatches)).failure.empty());
  const StageGraph& graph = job.plan->graph();
  const auto simulation = Simulate(graph, OneForwardOneBackward(LimitsOf(graph)),
                                   EqualDurations(1'000'000, 1'000'000), microbatches);
  for (int stage = 0; stage < static_cast<int>(graph.stages().size()); ++stage) {
    INFO(graph.StageName(stage) << ", " << microbatches << " microbatches");
    CHECK(job.Order(graph.StageName(stage)) == ToString(simulation.OrderOf(stage)));
  }
}

}  // namespace

TEST_CASE_METHOD(JobFixture, "actors run the order that the simulator predicts", "[actors]") {
  const std::int64_t microbatches = GENERATE(1, 4, 9);
  SECTION("a chain of 8") {
    CheckOrders(*this, SyntheticConfigOf({{"language", Pipeline(8)}}, {}), microbatches);
  }
  SECTION("an encoder pp2 before a language model pp6") {
    CheckOrders(*this,
                SyntheticConfigOf({{"vision", Pipeline(2)}, {"language", Pipeline(6)}},
                                  {{"vision", "language"}}),
                microbatches);
  }
  SECTION("figure 4(a): encoders pp2 and pp1, language pp3") {
    CheckOrders(
        *this,
        SyntheticConfigOf(
            {{"encoder1", Pipeline(2)}, {"encoder2", Pipeline(1)}, {"language", Pipeline(3)}},
            {{"encoder1", "language"}, {"encoder2", "language"}}),
        microbatches);
  }
  SECTION("a branch into two sinks") {
    CheckOrders(*this,
                SyntheticConfigOf(
                    {{"vision", Pipeline(2)}, {"caption", Pipeline(1)}, {"language", Pipeline(3)}},
                    {{"vision", "caption"}, {"vision", "language"}}),
                microbatches);
  }
  SECTION("a diamond") {
    CheckOrders(
        *this,
        SyntheticConfigOf(
            {{"a", Pipeline(1)}, {"b", Pipeline(2)}, {"c", Pipeline(1)}, {"d", Pipeline(1)}},
            {{"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}}),
        microbatches);
  }
  SECTION("credits below the distance to the sink") {
    Config config = SyntheticConfigOf({{"vision", Pipeline(1)}, {"language", Pipeline(3)}},
                                      {{"vision", "language"}});
    config.edges[0].credits = 2;
    CheckOrders(*this, config, microbatches);
  }
}

}  // namespace troupe
