// The director alone: the test plays the actors that it directs, the data and the observer.
#include <cmath>
#include <limits>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/actors/director_fixture.hpp"

namespace troupe {

TEST_CASE_METHOD(DirectorFixture, "a round begins at phases and feeds before it does at stages",
                 "[actors][director]") {
  config.rounds_ahead = 0;
  Start(1);
  CHECK(TakeLog() == ProbeLog{"phase: RoundBegin", "feed: RoundBegin", "update 0: UpdateRound",
                              "update 1: UpdateRound", "update 2: UpdateRound",
                              "stage 0: RoundBegin", "stage 1: RoundBegin", "stage 2: RoundBegin",
                              "stage 3: RoundBegin"});
  CHECK(phase.Oldest<RoundBegin>().round.loss_scale == 0.25);  // 4 valid tokens
  CHECK(stages[3]->Oldest<RoundBegin>().round.loss_scale == 0.25);
  CHECK(updates[2]->Oldest<UpdateRound>().place == 2);
  CHECK(updates[2]->Oldest<UpdateRound>().step.step == 1);
  CHECK(updates[2]->Oldest<UpdateRound>().wait);
}

TEST_CASE_METHOD(DirectorFixture, "rounds begin while fewer than rounds_ahead + 1 are open",
                 "[actors][director]") {
  config.rounds_ahead = 2;
  StartEvaluations(5);
  CHECK(RoundsBegun() == 3);
  CHECK(updates[0]->Count<UpdateRound>() == 0);
  for (std::size_t i : {3U, 1U, 0U}) Report(i, {0, 0, {}});
  CHECK(RoundsBegun() == 3);  // stage 2 has not reported
  Report(2, {0, 0, {}});
  CHECK(RoundsBegun() == 4);
  CHECK(stages[1]->Received<RoundBegin>()[3].round.number == 3);
  CHECK(stages[1]->Received<RoundBegin>()[3].round.loss_scale == 1.0 / 16.0);
  CHECK(observer->rounds.size() == 1);
}

TEST_CASE_METHOD(
    DirectorFixture,
    "the losses of a round are summed in the order of the stages, not of their reports",
    "[actors][director]") {
  StartEvaluations(1);
  // 1.0 is lost if it is added to either of the large ones.
  Report(3, {0, 4000, {1.0, 400, 40, 0, 0, 0}});
  Report(2, {0, 3000, {-1e16, 300, 30, 0, 0, 0}});
  Report(1, {0, 2000, {1e16, 200, 20, 0, 0, 0}});
  Report(0, {0, 1000, {0.0, 0, 0, 0, 0, 0}});
  REQUIRE(observer->rounds.size() == 1);
  const RoundResult& result = observer->rounds[0];
  CHECK(result.loss.loss == 1.0);
  CHECK(result.loss.tokens == 900);
  CHECK(result.busy_seconds == Approx(10000e-9));
  REQUIRE(result.sinks.size() == 2);
  CHECK(result.sinks[0].module == "language");
  CHECK(result.sinks[0].sums.loss == 0.0);
  CHECK(result.sinks[0].sums.tokens == 500);
  CHECK(result.sinks[0].sums.correct == 50);
  CHECK(result.sinks[1].module == "audio");
  CHECK(result.sinks[1].mean() == 1.0 / 400);
}

TEST_CASE_METHOD(DirectorFixture,
                 "the last update has the norms of the others at once, these when its own is here",
                 "[actors][director]") {
  config.rounds_ahead = 0;
  Start(2);
  GiveNorm(2, 0, 4.0);
  CHECK(updates[1]->Count<ApplyUpdate>() == 0);
  TakeLog();
  GiveNorm(0, 0, 1.0);
  CHECK(TakeLog() == ProbeLog{"update 1: ApplyUpdate"});
  CHECK(updates[1]->Oldest<ApplyUpdate>().squared_norms == std::vector<double>{1.0, 0.0, 4.0});
  CHECK(updates[1]->Oldest<ApplyUpdate>().clip_norm == 2.5);
  GiveNorm(1, 0, 20.0);
  CHECK(TakeLog() == ProbeLog{"update 0: ApplyUpdate", "update 2: ApplyUpdate"});
  CHECK(updates[0]->Oldest<ApplyUpdate>().squared_norms == std::vector<double>{1.0, 20.0, 4.0});
  ReportAll(0);
  CHECK(observer->rounds.empty());  // no update is done
  Give<ApplyUpdate>(*updates[2], UpdateDone{0, 3000});
  Give<ApplyUpdate>(*updates[0], UpdateDone{0, 1000});
  CHECK(observer->rounds.empty());
  Give<ApplyUpdate>(*updates[1], UpdateDone{0, 2000});
  REQUIRE(observer->rounds.size() == 1);
  CHECK(observer->rounds[0].gradient_norm == 5.0);
  CHECK(observer->rounds[0].gradient_norms ==
        std::map<std::string, double>{{"language", std::sqrt(22.0)}, {"vision", std::sqrt(3.0)}});
  CHECK(observer->rounds[0].clip_coefficient == Approx(0.5));
  CHECK(observer->rounds[0].busy_seconds == Approx(6000e-9));
  CHECK(RoundsBegun() == 2);
}

TEST_CASE_METHOD(DirectorFixture, "the job is done when the final parameters have been shown",
                 "[actors][director]") {
  StartEvaluations(1);
  ReportAll(0);
  CHECK(done->pending());
  REQUIRE(devices.Count<ToSet<Inspect>>() == 1);
  CHECK(devices.Oldest<ToSet<Inspect>>().parts[1].second.kind == TensorKind::kParameter);
  ShowTensors();
  CHECK(observer->shown == std::vector<std::string>{"final a", "final b", "final c"});
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.empty());
}

TEST_CASE_METHOD(DirectorFixture, "the first failure is the job's, whatever fails after it",
                 "[actors][director]") {
  config.rounds_ahead = 0;
  Start(3);
  Refuse<RoundBegin>(*stages[2], "language.s0 dp1: no memory");
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.text == "language.s0 dp1: no memory");
  Refuse<RoundBegin>(*stages[1], "language.s0 dp0: aborted");
  Refuse<UpdateRound>(*updates[0], "update: aborted");
  Send(director, JobFailed{{"a process is lost", FailureKind::kLost}});
  CHECK(abort->cause() == "language.s0 dp1: no memory");
  CHECK(done->answers.size() == 1);
  // Answers that are still on their way begin nothing.
  Report(0, {0, 0, {}});
  Report(3, {0, 0, {}});
  CHECK(RoundsBegun() == 1);
  CHECK(observer->rounds.empty());
}

TEST_CASE_METHOD(DirectorFixture, "a failure elsewhere ends the job with its cause",
                 "[actors][director]") {
  SECTION("while it runs") {
    Start(1);
    Send(director, JobFailed{{"node n1 is lost", FailureKind::kLost}});
  }
  SECTION("before it starts") {
    abort->Raise({"node n1 is lost", FailureKind::kLost});
    Start(1);
    CHECK(RoundsBegun() == 0);
  }
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure == Failure("node n1 is lost", FailureKind::kLost));
}

TEST_CASE_METHOD(DirectorFixture, "a job that is to stop completes its open rounds, no others",
                 "[actors][director]") {
  config.rounds_ahead = 1;
  StartEvaluations(9);
  Send(director, StopSoon{});
  ReportAll(0);
  CHECK(done->pending());
  ReportAll(1);
  ShowTensors();
  CHECK(RoundsBegun() == 2);
  CHECK(observer->rounds.size() == 2);
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.empty());
}

TEST_CASE_METHOD(DirectorFixture, "a round that overtakes an older one names the lost message",
                 "[actors][director]") {
  StartEvaluations(2);
  for (const std::size_t i : {0U, 1U, 3U}) Report(i, {0, 0, {}});
  for (const std::size_t i : {0U, 1U, 3U}) Report(i, {1, 0, {}});
  stages[2]->Drop<RoundBegin>();
  Report(2, {1, 0, {}});
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.text ==
        "director has no report of round 0 from stage language.s0 dp1, but all of round 1: a "
        "message between them is lost");
}

TEST_CASE_METHOD(DirectorFixture, "an update that sums to no finite norm ends the job",
                 "[actors][director]") {
  Start(1);
  GiveNorm(0, 0, 1.0);
  GiveNorm(1, 0, std::numeric_limits<double>::infinity());
  GiveNorm(2, 0, 1.0);
  REQUIRE(done->answers.size() == 1);
  CHECK_THAT(done->answers[0].failure.text, Catch::EndsWith(": the gradient norm is inf"));
  CHECK(updates[0]->Count<ApplyUpdate>() == 0);  // nothing steps
}

TEST_CASE_METHOD(DirectorFixture, "an observer that throws ends the job with its words",
                 "[actors][director]") {
  observer->error = "metrics.csv: the disk is full";
  StartEvaluations(3);
  ReportAll(0);
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.text == "metrics.csv: the disk is full");
}

TEST_CASE_METHOD(DirectorFixture, "a resumed job begins when every shard has been loaded",
                 "[actors][director]") {
  config.checkpoints.resume = {"step 2", {"vision"}};
  std::vector<std::uint64_t> loaded;
  config.checkpoints.loaded = [&](const std::vector<LoadedShard>& shards, const OpenElsewhere&) {
    for (const LoadedShard& shard : shards) loaded.push_back(shard.bytes_read);
  };
  Start(1);
  REQUIRE(more_devices.Count<ToSet<LoadShard>>() == 1);
  CHECK(more_devices.Oldest<ToSet<LoadShard>>().parts[0].second.order.folder == "step 2");
  CHECK(more_devices.Oldest<ToSet<LoadShard>>().parts[0].second.order.fresh ==
        std::vector<std::string>{"vision"});
  Give<ToSet<LoadShard>>(devices, FromSet<ShardLoaded>{{{{{}, 1, 1}}, {{{}, 2, 2}}}});
  CHECK(RoundsBegun() == 0);
  CHECK(loaded.empty());
  Give<ToSet<LoadShard>>(more_devices, FromSet<ShardLoaded>{{{{{}, 3, 3}}}});
  CHECK(loaded == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(RoundsBegun() == 1);
}

TEST_CASE_METHOD(DirectorFixture, "with inspect every gradient is shown before any update steps",
                 "[actors][director]") {
  config.inspect = true;
  Start(3);
  CHECK(RoundsBegun() == 1);  // one at a time
  GiveNorms(0);
  CHECK(updates[0]->Count<ApplyUpdate>() == 0);
  CHECK(devices.Oldest<ToSet<Inspect>>().parts[0].second.kind == TensorKind::kGradient);
  ShowTensors();
  CHECK(observer->shown ==
        std::vector<std::string>{"gradient of a", "gradient of b", "gradient of c"});
  for (Probe* update : updates) CHECK(update->Count<ApplyUpdate>() == 1);
}

TEST_CASE_METHOD(DirectorFixture, "a rank that is slow in steps in a row is named, and replaced",
                 "[actors][director]") {
  config.ranks = {{0, 1}, {2, 3}, {3, 2}, {4}};
  config.slow =
      SlowRanks({.factor = 2.0, .steps = 3}, {{0, {{1}}}, {1, {{0}}}, {2, {}}, {3, {}}, {4, {}}});
  config.processes = std::make_shared<const ProcessPlan>(ProcessPlan::Local({.ranks = 5}, 5));
  std::vector<int> replaced;
  config.replace = [&](int process) { replaced.push_back(process); };
  Start(8, {3});
  for (std::int64_t round = 0; round < 8; ++round) {
    const bool trains = round != 3;  // the evaluation does not count
    if (trains) GiveNorms(round);
    if (trains) FinishUpdates(round);
    const std::int64_t second = 1'000'000'000;
    Report(0, {.round = round, .loss = {}, .own_ns = {second, trains ? 5 * second : second}});
    for (std::size_t i : {1U, 2U})
      Report(i, {.round = round, .loss = {}, .own_ns = {second, 2 * second}});
    Report(3, {.round = round, .loss = {}, .own_ns = {}});  // a stage without passes
    CHECK(observer->slow.size() == (round < 5 ? 0 : 1));  // steps 3, 4 and 5 after the start's two
  }
  REQUIRE(observer->slow.size() == 1);
  CHECK(observer->slow[0].first == 5);
  CHECK(observer->slow[0].second.name == "n1");
  CHECK(observer->slow[0].second.ranks == std::vector<int>{1});
  CHECK(observer->slow[0].second.slowest.own_s == Approx(5.0));
  // It is asked again after each step, but not once the last one has begun.
  CHECK(replaced == std::vector<int>{1});
}

}  // namespace troupe
