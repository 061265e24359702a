// The passes and rounds of one stage.
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/actors/stage_fixture.hpp"

namespace troupe {

TEST_CASE_METHOD(StageFixture, "forwards run in the order of the microbatches, one at a time",
                 "[actors][stage]") {
  config.rule.limit = 4;
  Open();
  Begin(0, 3);
  for (const std::int64_t unit : {0, 1, 2}) Activate(unit);
  CHECK(Passes() == "F0");
  FinishForward();
  CHECK(Passes() == "F1");
  FinishForward();
  CHECK(Passes() == "F2");
  // Every shard reads the rows that came, and hands its own on to the next stage.
  const auto set = devices.Received<ToSet<RunForward>>().at(1);
  REQUIRE(set.parts.size() == 2);
  CHECK(set.parts[0].first == 4);
  CHECK(set.parts[1].first == 5);
  for (const auto& [rank, run] : set.parts) {
    CHECK(run.stage == 1);
    CHECK(run.pass.loss_scale == 0.25);
    CHECK(ValuesOf(run.pass.inputs) == std::vector<std::vector<double>>{{100, 101}});
  }
  const auto sent = next.Received<Activation>();
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].unit == 1);
  CHECK(sent[1].link == 6);
  CHECK(ValuesOf(sent[1].shards) == std::vector<std::vector<double>>{{1001}, {2001}});
}

TEST_CASE_METHOD(StageFixture, "1f1b keeps no more units in flight than its limit",
                 "[actors][stage]") {
  Open();
  Begin(0, 4);
  for (const std::int64_t unit : {0, 1, 2, 3}) Activate(unit);
  FinishForward();
  FinishForward();
  CHECK(Passes() == "F0 F1");  // two are in flight: the third waits for a backward
  GiveGradient(0);
  CHECK(Passes() == "B0");
  FinishBackward();
  CHECK(Passes() == "F2");
  FinishForward();
  CHECK(Passes().empty());
  GiveGradient(1);
  FinishBackward();
  FinishForward();
  CHECK(Passes() == "B1 F3");
  GiveGradient(2);
  FinishBackward();
  GiveGradient(3);
  FinishBackward();
  CHECK(Passes() == "B2 B3");
}

TEST_CASE_METHOD(StageFixture, "the gradient of a microbatch is the answer to its activation",
                 "[actors][stage]") {
  SetLinks(2);
  Open();
  Begin(0, 2);
  const auto first = Activate(0, 0);
  const auto second = Activate(0, 1);
  const auto later = Activate(1, 0);
  FinishForward();
  CHECK(first->pending());  // the forward alone is no gradient
  GiveGradient(0);
  CHECK(ValuesOf(devices.Oldest<ToSet<RunBackward>>().parts[1].second.pass.gradients) ==
        std::vector<std::vector<double>>{{7}});
  CHECK(first->pending());
  FinishBackward();
  REQUIRE(first->answers.size() == 1);
  REQUIRE(second->answers.size() == 1);
  CHECK(first->answers[0].unit == 0);
  CHECK(ValuesOf(first->answers[0].shards) == std::vector<std::vector<double>>{{-1000}, {-2000}});
  CHECK(ValuesOf(second->answers[0].shards) == std::vector<std::vector<double>>{{-1010}, {-2010}});
  CHECK(later->pending());
}

TEST_CASE_METHOD(StageFixture, "a stage reports for how long it waited for data alone",
                 "[actors][stage]") {
  SetLinks(1);
  ReadData();
  MakeSink();
  Open();
  const auto report = Begin(0, 2);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  pause();  // it lacks the activation, too
  GiveInput(0, std::make_shared<Inputs>(), {.source = 1, .process = "n1", .ns = 5});
  pause();
  Activate(0);
  pause();  // its devices are busy
  FinishForward();
  FinishBackward();
  Activate(1);
  pause();
  CHECK(Passes() == "F0 B0");
  const DataDelay delay{.source = 2, .phase = DataPhase::kDecode, .process = "n2", .ns = 7};
  GiveInput(1, std::make_shared<Inputs>(), delay);
  FinishForward();
  FinishBackward();
  REQUIRE(report->answers.size() == 1);
  const DataWait& data = report->answers[0].data;
  CHECK(data.ns >= 20'000'000);
  CHECK(data.longest_ns == data.ns);  // there was one such wait
  CHECK(data.delay == delay);
}

TEST_CASE_METHOD(StageFixture, "a wait for data that another pass ends is named later",
                 "[actors][stage]") {
  SetLinks(1);
  ReadData();
  Open();
  const auto report = Begin(0, 2);
  GiveInput(0, std::make_shared<Inputs>());
  Activate(0);
  FinishForward();
  Activate(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  GiveGradient(0);  // its backward can run
  const DataDelay delay{.source = 2, .phase = DataPhase::kDecode, .process = "n2", .ns = 7};
  FinishBackward();
  GiveInput(1, std::make_shared<Inputs>(), delay);
  FinishForward();
  GiveGradient(1);
  FinishBackward();
  REQUIRE(report->answers.size() == 1);
  CHECK(report->answers[0].data.ns >= 20'000'000);
  CHECK(report->answers[0].data.delay == delay);
}

TEST_CASE_METHOD(StageFixture, "a unit goes forward when all incoming links have brought it",
                 "[actors][stage]") {
  SetLinks(2);
  ReadData();
  Open();
  Begin(0, 1);
  Activate(0, 1);
  const auto taken = GiveInput(0, std::make_shared<Inputs>());
  CHECK(Passes().empty());
  Activate(0, 0);
  CHECK(Passes() == "F0");
  const auto run = devices.Oldest<ToSet<RunForward>>().parts[0].second;
  CHECK(ValuesOf(run.pass.inputs) == std::vector<std::vector<double>>{{0, 1}, {10, 11}});
  CHECK(run.pass.data != nullptr);
  CHECK(run.samples == std::vector<std::string>{"sample 0"});
  CHECK(taken->pending());  // the feed may bring more when the forward has run
  FinishForward();
  CHECK(taken->answers.size() == 1);
}

TEST_CASE_METHOD(StageFixture, "tensors of another process count when their bytes are here",
                 "[actors][stage]") {
  FarTensors far(config.tensors);
  Open();
  Begin(0, 2);
  const auto activate = [&](std::int64_t unit, double value) {
    return Ask<Gradient>(stage, Activation{unit, 0, {far.Name({value})}, {}, {}});
  };
  activate(0, 30);
  activate(1, 31);
  CHECK(far.Open() ==
        std::vector<std::string>{"language.s1 dp0: activation of microbatch 0 (step 1 mb 0)",
                                 "language.s1 dp0: activation of microbatch 1 (step 1 mb 1)"});
  far.Arrive(1);  // out of order
  Deliver();
  CHECK(Passes().empty());
  far.Arrive();
  Deliver();
  CHECK(Passes() == "F0");
  FinishForward();
  FinishForward();
  CHECK(ValuesOf(devices.Received<ToSet<RunForward>>()[1].parts[1].second.pass.inputs) ==
        std::vector<std::vector<double>>{{31}});
  Passes();
  Give<Activation>(next, Gradient{0, {far.Name({-30})}});
  CHECK(Passes().empty());
  far.Arrive();
  Deliver();
  CHECK(Passes() == "B0");
  CHECK(ValuesOf(devices.Oldest<ToSet<RunBackward>>().parts[0].second.pass.gradients) ==
        std::vector<std::vector<double>>{{-30}});
}

TEST_CASE_METHOD(StageFixture, "the parts of a link go to the ranks that have them, and so back",
                 "[actors][stage]") {
  config.parts = 2;  // one rank each
  config.in[0].part = 0;
  config.in.push_back(config.in[0]);
  config.in[1].part = 1;
  MakeSink();
  config.rule = {.limit = 1};
  Open();
  Begin(0, 1);
  const auto second = Activate(0, 1);
  CHECK(Passes().empty());
  const auto first = Activate(0, 0);
  const auto set = devices.Oldest<ToSet<RunForward>>();
  REQUIRE(set.parts.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(set.parts[i].second.pass.inputs.size() == 1);
    const auto value = 10.0 * static_cast<double>(i);
    CHECK(ValuesOf(set.parts[i].second.pass.inputs[0]) == std::vector<double>{value, value + 1});
  }
  FinishForward();
  FinishBackward();
  REQUIRE(first->answers.size() == 1);
  REQUIRE(second->answers.size() == 1);
  CHECK(ValuesOf(first->answers[0].shards) == std::vector<std::vector<double>>{{-1000}});
  CHECK(ValuesOf(second->answers[0].shards) == std::vector<std::vector<double>>{{-2000}});
}

TEST_CASE_METHOD(StageFixture, "a link that carries no gradient is answered after the forward",
                 "[actors][stage]") {
  SetLinks(2);
  config.in[1].carries_gradient = false;
  Open();
  Begin(0, 1);
  const auto trained = Activate(0, 0);
  const auto frozen = Activate(0, 1);
  CHECK(frozen->pending());
  FinishForward();
  REQUIRE(frozen->answers.size() == 1);
  CHECK(frozen->answers[0].shards.empty());
  CHECK(trained->pending());
}

TEST_CASE_METHOD(StageFixture,
                 "an evaluation runs no backward and ends when the next stage has answered",
                 "[actors][stage]") {
  config.update = update.As<Update>();
  Open();
  const auto report = Begin(0, 1, false);
  const auto asked = Activate(0);
  CHECK_FALSE(devices.Oldest<ToSet<RunForward>>().parts[0].second.pass.train);
  FinishForward();
  CHECK(asked->answers.size() == 1);
  CHECK(report->pending());
  Give<Activation>(next, Gradient{0, {}});
  CHECK(report->answers.size() == 1);
  CHECK(Passes() == "F0");
  CHECK(update.Count<BackwardsDone>() == 0);
}

TEST_CASE_METHOD(StageFixture, "a round is reported when the parameters have stepped",
                 "[actors][stage]") {
  MakeSink();
  config.update = update.As<Update>();
  ReadData();
  Open();
  const auto report = Begin(0, 2);
  for (const std::int64_t unit : {0, 1}) {
    Activate(unit);
    auto data = std::make_shared<Inputs>();
    data->num_tokens = 20 + unit;
    GiveInput(unit, data);
    FinishForward();
    CHECK(update.Count<BackwardsDone>() == 0);
    FinishBackward();
  }
  CHECK(Passes() == "F0 B0 F1 B1");
  REQUIRE(update.Count<BackwardsDone>() == 1);
  CHECK(update.Oldest<BackwardsDone>().round == 0);
  CHECK(update.Oldest<BackwardsDone>().stage == 1);
  CHECK(report->pending());
  Give<BackwardsDone>(update, Updated{0});
  REQUIRE(report->answers.size() == 1);
  CHECK(report->answers[0].round == 0);
  CHECK(report->answers[0].busy_ns == 2 * (1 + 2) + 2 * (10 + 20));
  CHECK(report->answers[0].loss.loss == 0.5 + 1.5);  // of the first shard: all compute the same
  CHECK(report->answers[0].loss.tokens == 6);
  CHECK(report->answers[0].loss.correct == 4);
  CHECK(report->answers[0].loss.sequence_tokens == 41);
}

TEST_CASE_METHOD(StageFixture, "microbatches of the next round wait for the end of this one",
                 "[actors][stage]") {
  MakeSink();
  config.update = update.As<Update>();
  Open();
  Activate(0);
  CHECK(Passes().empty());  // its round has not begun
  const auto first = Begin(0, 1);
  const auto second = Begin(1, 1);
  Activate(1);
  FinishForward();
  FinishBackward();
  CHECK(Passes() == "F0 B0");
  Give<BackwardsDone>(update, Updated{0});
  CHECK(Passes() == "F1");
  CHECK(first->answers.size() == 1);
  CHECK(second->pending());
  CHECK(devices.Oldest<ToSet<RunForward>>().parts[0].second.round == 1);
}

}  // namespace troupe
