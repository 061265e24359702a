// Schedules other than 1f1b as the actors run them: the orders, the sums, and which stages wait.
#include <algorithm>

#include <catch2/catch.hpp>

#include "schedule/simulate.hpp"
#include "tests/actors/job_fixture.hpp"
#include "tests/schedule/csv_text.hpp"

namespace troupe {
namespace {

Config Scheduled(Config config, const std::string& kind, std::int64_t microbatches,
                 std::int64_t chunks = 0) {
  config.schedule.kind = ScheduleKindOf(kind).value();
  config.schedule.microbatches = microbatches;
  config.schedule.chunks = chunks;
  config.schedule.micro_batch_size = 2;
  SetChunks(config);
  return config;
}

Config Chain(int pp) { return SyntheticConfigOf({{"language", LayoutOf(1, pp, 1)}}, {}); }

/// An encoder with three replicas before a language model with two.
Config EncoderBefore(int pp) {
  return SyntheticConfigOf({{"vision", LayoutOf(1, 1, 3)}, {"language", LayoutOf(2, pp, 2)}},
                           {{"vision", "language"}});
}

/// Training rounds 0, 1 and 3; round 2 is an evaluation of another length.
RoundPlan WithEvaluation(std::int64_t microbatches) {
  return [=](std::int64_t number) -> std::optional<Round> {
    if (number >= 4) return std::nullopt;
    const bool train = number != 2;
    return Round{number, train, number, train ? microbatches : 3, 1.0};
  };
}

void CheckOrders(JobFixture& job, const Config& config, std::uint64_t seed = 0) {
  const std::int64_t microbatches = config.schedule.microbatches;
  const auto done = job.RunShuffled(config, WithEvaluation(microbatches), seed);
  REQUIRE(done.failure.text == "");
  const StageGraph& graph = job.plan->graph();
  const auto simulation =
      Simulate(graph, job.plan->schedule(), EqualDurations(2, 2, 2), microbatches);
  REQUIRE(simulation.blocked.empty());
  for (int stage = 0; stage < static_cast<int>(graph.stages().size()); ++stage) {
    const auto& rule = job.plan->stages()[static_cast<std::size_t>(stage)].rule;
    const bool fixed = rule.kind == RuleKind::kOrdered || rule.kind == RuleKind::kZbH1;
    if (seed != 0 && !fixed) continue;
    for (const int round : {0, 1, 3}) {
      INFO(graph.StageName(stage) << ", round " << round);
      CHECK(job.Order(graph.StageName(stage), round) == ToString(simulation.OrderOf(stage)));
    }
    CHECK(job.Order(graph.StageName(stage), 2) == "F0 F1 F2");
  }
}

/// What `rank` ran in a round, over all its stages.
std::string OrderOfRank(const JobFixture& job, int rank, std::int64_t round) {
  std::vector<PassRecord> records;
  for (const TraceWork& work : job.Trace().work) records.push_back(work.pass);
  std::erase_if(records, [&](const PassRecord& r) {
    return r.rank != rank || r.round != round ||
           (r.kind != WorkKind::kForward && r.kind != WorkKind::kBackward &&
            r.kind != WorkKind::kWeight);
  });
  std::int64_t first = records.empty() ? 0 : records.front().unit;
  std::string text;
  for (const PassRecord& r : records) first = std::min(first, r.unit);
  for (const PassRecord& r : records) {
    text += (text.empty() ? "" : " ") + std::to_string(r.stage) + ToString(r.kind) +
            std::to_string(r.unit - first);
  }
  return text;
}

}  // namespace

TEST_CASE_METHOD(JobFixture, "actors run gpipe as the simulator does", "[actors]") {
  CheckOrders(*this, Scheduled(Chain(4), "gpipe", 6));
  CHECK(Order("language.s1", 1) == "F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5");
  CheckOrders(*this, Scheduled(EncoderBefore(2), "gpipe", 6));
}

TEST_CASE_METHOD(JobFixture,
                 "actors run interleaved stages as the simulator does, on every rank "
                 "in the order of Megatron-LM",
                 "[actors]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(0, 1, 2, 3));
  SECTION("a chain") {
    CheckOrders(*this, Scheduled(Chain(2), "interleaved", 4), seed);
    for (const int round : {0, 1, 3}) {
      CHECK(OrderOfRank(*this, 0, round) ==
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
    }
    CheckOrders(*this, Scheduled(Chain(3), "interleaved", 6, 3), seed);
  }
  SECTION("with an encoder before it") {
    CheckOrders(*this, Scheduled(EncoderBefore(2), "interleaved", 6), seed);
  }
}

TEST_CASE_METHOD(JobFixture, "actors run the orders of a CSV file", "[actors]") {
  Config config = Scheduled(Chain(2), "csv", 3);
  // Neither 1f1b nor gpipe; rank 0 splits its backwards.
  config.schedule.file_text = "0F0,0F1,0F2,0I0,0W0,0I1,0I2,0W1,0W2\n1F0,1F1,1B0,1F2,1B1,1B2\n";
  CheckOrders(*this, config, 7);
  CHECK(Order("language.s0", 3) == "F0 F1 F2 B0 W0 B1 B2 W1 W2");
  CHECK(Order("language.s1", 3) == "F0 F1 B0 F2 B1 B2");
  CHECK(RunShuffled(config, TrainingRounds(1, 4), 0).failure ==
        "language.s0 dp0: expected a round of 3 microbatches, which its order is for, got 4");
}

TEST_CASE_METHOD(JobFixture, "zb-h1 runs one order in any order of delivery", "[actors]") {
  const Config config = Scheduled(EncoderBefore(4), "zb-h1", 9);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("delivery order " << seed);
    CheckOrders(*this, config, seed);
  }
  CHECK(Order("vision.s0", 3) ==
        "F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 F6 B2 W2 F7 B3 W3 F8 B4 W4 B5 W5 B6 W6 B7 W7 B8 W8");
  CHECK(Order("language.s3", 3) ==
        "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 F8 B8 W5 W6 W7 W8");
}

TEST_CASE_METHOD(JobFixture, "zb-h1 does not wait for a forward that has no room to come",
                 "[actors]") {
  const auto credits = GENERATE(1, 2, 3, 4, 5);
  Config config = Scheduled(EncoderBefore(4), "zb-h1", 9);
  config.edges[0].credits = credits;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    INFO(credits << " credits, delivery order " << seed);
    REQUIRE(RunShuffled(config, WithEvaluation(9), seed).failure.text == "");
    const auto& rules = plan->schedule().rules;
    CHECK(rules[1].forwards_may_lack_room == (credits < 4));
    CHECK(rules[3].forwards_may_lack_room == (credits < 2));
  }
}

TEST_CASE_METHOD(JobFixture, "every schedule gives the sums of 1f1b", "[actors]") {
  inspect = true;
  const Config plain = Scheduled(EncoderBefore(4), "1f1b", 4);
  REQUIRE(Run(plain, TrainingRounds(3, 4)).failure.text == "");
  const auto gradients = seen->GradientSums();
  const auto parameters = seen->parameters;
  REQUIRE(gradients.size() == 5);
  Config csv = Scheduled(EncoderBefore(2), "csv", 4, 2);
  csv.schedule.file_text = ToCsv(InterleavedOrders(2, 2, 4));
  for (const Config& config :
       {Scheduled(EncoderBefore(4), "gpipe", 4), Scheduled(EncoderBefore(4), "zb-h1", 4),
        Scheduled(EncoderBefore(2), "interleaved", 4), csv}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      INFO(ToString(config.schedule.kind) << ", delivery order " << seed);
      REQUIRE(RunShuffled(config, TrainingRounds(3, 4), seed).failure.text == "");
      // Replicas of tp hold the whole of a synthetic stage: the pieces are alike.
      CHECK(seen->GradientSums() == gradients);
      CHECK(seen->parameters == parameters);
    }
  }
}

TEST_CASE_METHOD(JobFixture, "a frozen encoder has no part in the orders and delays no stage",
                 "[actors]") {
  Config config = Scheduled(EncoderBefore(2), "interleaved", 4);
  config.modules[0].frozen = true;
  CheckOrders(*this, config, 5);
  CHECK(Order("vision.s0", 1) == "F0 F1 F2 F3");
  config.modules[0].frozen = false;
  config.modules[1].frozen = true;  // its stages still give gradients to the encoder, no weights
  config.schedule.kind = ScheduleKind::kZbH1;
  SetChunks(config);
  REQUIRE(Run(config, TrainingRounds(1, 4)).failure.text == "");
  CHECK(Order("language.s1") == "F0 B0 F1 B1 F2 B2 F3 B3");
  CHECK(Order("vision.s0").find("W3") != std::string::npos);
}

TEST_CASE("a schedule that deadlocks is refused before anything starts", "[actors]") {
  Config config = Scheduled(Chain(2), "csv", 2);
  config.schedule.file = "orders.csv";
  const auto refused = [&](const std::string& text, const std::string& why) {
    config.schedule.file_text = text;
    CHECK_THROWS_WITH(JobPlan(config), why);
  };
  refused("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n",
          "orders.csv: deadlock: language.s0 cannot run B0, missing its gradient; "
          "language.s1 cannot run F1, missing its activation");
  refused("0F0,0B0,0F1,0B1\n",
          "orders.csv: expected a row for each of the 2 pipeline ranks of language, got 1");
  refused("0F0,0B0,0F1,0B1\n2F0,1B0,1F1,1B1\n",
          "orders.csv: rank 1: F0 of stage 2: expected a stage below 2");
  refused("0F0,x\n",
          "orders.csv: row 0 column 1: expected a stage below 65536 first, as in 0F3, got \"x\"");
}

TEST_CASE("what a stage keeps follows from its schedule", "[actors]") {
  const auto kept = [](const Config& config) {
    std::vector<std::int64_t> counts;
    const JobPlan plan(config);
    for (const StagePlan& stage : plan.stages()) counts.push_back(stage.kept);
    return counts;
  };
  using Counts = std::vector<std::int64_t>;
  CHECK(kept(Scheduled(Chain(4), "1f1b", 8)) == Counts{4, 3, 2, 1});
  CHECK(kept(Scheduled(Chain(4), "gpipe", 8)) == Counts{8, 8, 8, 8});
  CHECK(kept(Scheduled(Chain(4), "zb-h1", 8)) == Counts{4, 4, 4, 4});
  CHECK(kept(Scheduled(Chain(2), "interleaved", 8)) == Counts{4, 3, 2, 1});
  CHECK(kept(Scheduled(Chain(4), "1f1b", 2)) == Counts{2, 2, 2, 1});
}

}  // namespace troupe
