// One feed alone: the test plays the director, the source of its data and the stages it feeds.
#include "actors/feed_actor.hpp"

#include <set>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// Keeps what it is asked for, and fails at one call of its choice.
class LoggedSource : public InputSource {
 public:
  std::shared_ptr<const Inputs> Assemble(const FeedUnit& whole,
                                         const std::vector<Buffer>& samples) override {
    const auto& [module, dp, round, unit] = whole;
    loads.push_back(module + " dp" + std::to_string(dp) + " round " + std::to_string(round.number) +
                    " unit " + std::to_string(unit));
    for (const Buffer& sample : samples) {
      loads.back() += " of " + std::to_string(static_cast<int>(ValuesOf(sample)[0]));
    }
    if (loads.size() == fails_at) throw std::runtime_error("row 17: not a JPEG");
    auto inputs = std::make_shared<Inputs>();
    inputs->num_tokens = 100 * round.number + unit;
    inputs->names = {std::to_string(round.number) + "/" + std::to_string(unit)};
    return inputs;
  }
  RoundCounts Count(const Round&) override { return {1, 1, 1}; }
  std::vector<SampleTicket> TicketsOf(const FeedUnit& unit) override {
    if (unit.unit == no_tickets_of) throw std::runtime_error("the index is gone");
    return {{.row = 10 * unit.round.number + unit.unit}};
  }

  std::int64_t no_tickets_of = -1;
  std::vector<std::string> loads;
  std::size_t fails_at = 0;
};

class FeedFixture : public ActorFixture {
 public:
  FeedFixture() {
    config.name = "feed of vision dp3";
    config.module = "vision";
    config.dp = 3;
    config.source = source;
    config.abort = abort;
  }
  void Open(std::size_t num_stages = 1) {
    for (std::size_t i = 0; i < num_stages; ++i) {
      stages.push_back(&AddProbe("stage " + std::to_string(i)));
      config.stages.push_back(stages.back()->As<Stage>());
    }
    feed = Spawn(RunFeed, config);
  }
  void Begin(std::int64_t number, std::int64_t microbatches) {
    Send(feed, RoundBegin{Round{number, true, number + 40, microbatches, 1.0}});
  }
  void AddDispatcher() {
    dispatcher = &AddProbe("dispatcher");
    config.dispatcher = dispatcher->As<Dispatcher>();
  }
  /// The samples of an ordered unit are prepared: its own number.
  void Prepare(std::size_t place = 0) {
    std::vector<std::int64_t> open;
    for (const auto& ask : dispatcher->Received<PrepareUnit>()) {
      if (!prepared.contains(ask.number)) open.push_back(ask.number);
    }
    const std::int64_t unit = open.at(place);
    prepared.insert(unit);
    const UnitPrepared answer{unit, {RowsOf({static_cast<double>(unit)})}};
    Give<PrepareUnit>(*dispatcher, answer, place);
  }
  /// Stage `i` takes the oldest unit that it has got and not taken.
  void Take(std::size_t i) { Give<Input>(*stages[i], InputTaken{stages[i]->Oldest<Input>().unit}); }

  std::shared_ptr<LoggedSource> source = std::make_shared<LoggedSource>();
  FeedConfig config;
  std::vector<Probe*> stages;
  Probe* dispatcher = nullptr;
  std::set<std::int64_t> prepared;
  Feed feed;
};

}  // namespace

TEST_CASE_METHOD(FeedFixture, "a feed is never more units ahead than it may be", "[actors][feed]") {
  config.ahead = 3;
  Open();
  CHECK(source->loads.empty());
  Begin(0, 6);
  CHECK(source->loads.size() == 3);
  CHECK(TakeLog() == ProbeLog{"stage 0: Input 0", "stage 0: Input 1", "stage 0: Input 2"});
  Take(0);
  CHECK(source->loads.size() == 4);
  CHECK(TakeLog() == ProbeLog{"stage 0: Input 3"});
  for (int i = 0; i < 5; ++i) Take(0);
  CHECK(TakeLog() == ProbeLog{"stage 0: Input 4", "stage 0: Input 5"});
  CHECK(source->loads.size() == 6);
}

TEST_CASE_METHOD(FeedFixture, "a stage that takes its units late holds no other stage back",
                 "[actors][feed]") {
  Open(2);
  Begin(0, 5);
  CHECK(stages[0]->Count<Input>() == 2);
  CHECK(stages[1]->Count<Input>() == 2);
  Take(0);
  Take(0);
  CHECK(stages[0]->Count<Input>() == 4);
  CHECK(stages[1]->Count<Input>() == 4);  // none of which it has taken
  Take(1);
  CHECK(stages[0]->Count<Input>() == 4);  // stage 0 has two left
  CHECK(stages[0]->Received<Input>()[2].data == stages[1]->Received<Input>()[2].data);
}

TEST_CASE_METHOD(FeedFixture, "units count on over the rounds and are loaded by place in theirs",
                 "[actors][feed]") {
  Open();
  Begin(0, 2);
  Begin(1, 2);
  Take(0);
  Take(0);
  CHECK(source->loads ==
        std::vector<std::string>{"vision dp3 round 0 unit 0", "vision dp3 round 0 unit 1",
                                 "vision dp3 round 1 unit 0", "vision dp3 round 1 unit 1"});
  const auto inputs = stages[0]->Received<Input>();
  REQUIRE(inputs.size() == 4);
  CHECK(inputs[2].unit == 2);
  CHECK(inputs[2].data->num_tokens == 100);
  CHECK(inputs[3].data->num_tokens == 101);
  CHECK(inputs[3].samples == std::vector<std::string>{"1/1"});
}

TEST_CASE_METHOD(FeedFixture, "a window of microbatches is one unit", "[actors][feed]") {
  config.ahead = 10;
  SECTION("of three microbatches, the last of a round with fewer") {
    config.units = UnitLength(3);
    Open();
    Begin(0, 7);
    Begin(1, 3);
    CHECK(stages[0]->Count<Input>() == 3 + 1);
  }
  SECTION("of the whole round") {
    config.units = UnitLength(0);
    Open();
    Begin(0, 7);
    Begin(1, 3);
    CHECK(stages[0]->Count<Input>() == 2);
  }
}

TEST_CASE_METHOD(FeedFixture, "data that cannot be loaded ends the job by name and place",
                 "[actors][feed]") {
  source->fails_at = 4;
  Open();
  Begin(0, 3);
  Begin(1, 3);
  CHECK_FALSE(abort->raised());
  Take(0);
  Take(0);
  CHECK(abort->failure() == Failure("feed of vision dp3 (step 42 mb 0): row 17: not a JPEG",
                                    FailureKind::kError, {"feed of vision dp3"}));
  Take(0);
  CHECK(source->loads.size() == 4);  // nothing more is loaded
  CHECK(stages[0]->Count<Input>() == 3);
}

TEST_CASE_METHOD(FeedFixture, "a refused input, a wrong answer or a round out of turn ends the job",
                 "[actors][feed]") {
  Open();
  SECTION("an input") {
    Begin(0, 4);
    Refuse<Input>(*stages[0], "vision.s0 dp3: no room");
    CHECK(abort->failure() ==
          Failure("vision.s0 dp3: no room", FailureKind::kError, {"feed of vision dp3"}));
    Take(0);
    CHECK(source->loads.size() == 2);
  }
  SECTION("an answer for another input") {
    Begin(0, 4);
    Give<Input>(*stages[0], InputTaken{7});
    CHECK(abort->cause() == "feed of vision dp3: expected that a stage takes input 0, got 7");
    Take(0);
    CHECK(source->loads.size() == 2);
  }
  SECTION("a round") {
    Begin(1, 4);
    CHECK(abort->cause() == "feed of vision dp3: expected round 0 from director, got 1");
    CHECK(source->loads.empty());
  }
}

TEST_CASE_METHOD(FeedFixture, "a feed orders some units ahead and delivers them in order",
                 "[actors][feed]") {
  AddDispatcher();
  config.prefetch = 3;
  Open();
  Begin(0, 6);
  CHECK(TakeLog() == ProbeLog{"dispatcher: PrepareUnit 0", "dispatcher: PrepareUnit 1",
                              "dispatcher: PrepareUnit 2"});
  Prepare(2);
  Prepare(1);
  CHECK(TakeLog().empty());  // unit 0 is not there
  Prepare();
  CHECK(TakeLog() == ProbeLog{"dispatcher: SamplesUsed", "dispatcher: PrepareUnit 3",
                              "dispatcher: SamplesUsed", "dispatcher: PrepareUnit 4",
                              "stage 0: Input 0", "stage 0: Input 1"});
  Take(0);
  CHECK(TakeLog() ==
        ProbeLog{"dispatcher: SamplesUsed", "dispatcher: PrepareUnit 5", "stage 0: Input 2"});
  for (int i = 0; i < 3; ++i) Prepare();
  for (int i = 0; i < 5; ++i) Take(0);
  CHECK(source->loads == std::vector<std::string>{
                             "vision dp3 round 0 unit 0 of 0", "vision dp3 round 0 unit 1 of 1",
                             "vision dp3 round 0 unit 2 of 2", "vision dp3 round 0 unit 3 of 3",
                             "vision dp3 round 0 unit 4 of 4", "vision dp3 round 0 unit 5 of 5"});
}

TEST_CASE_METHOD(FeedFixture, "an order says what is to be prepared, and how early it is needed",
                 "[actors][feed]") {
  AddDispatcher();
  config.units = UnitLength(4);
  Open();
  Begin(0, 7);
  Begin(1, 7);
  const auto asks = dispatcher->Received<PrepareUnit>();
  REQUIRE(asks.size() == 4);
  CHECK(asks[3].number == 3);
  CHECK(asks[1].microbatch == 4);
  CHECK(asks[3].microbatch == 7 + 4);
  REQUIRE(asks[3].samples.size() == 1);
  CHECK(asks[3].samples[0].row == 11);
}

TEST_CASE_METHOD(FeedFixture, "a bad sample ends the job when its unit comes to be delivered",
                 "[actors][feed]") {
  AddDispatcher();
  SECTION("one that cannot be prepared") {
    Open();
    Begin(0, 4);
    Give<PrepareUnit>(*dispatcher, MakeFailure(Failure("row 17: not a JPEG")), 1);
    CHECK_FALSE(abort->raised());
    Prepare();
    CHECK(abort->failure() == Failure("feed of vision dp3 (step 41 mb 1): row 17: not a JPEG",
                                      FailureKind::kError, {"feed of vision dp3"}));
  }
  SECTION("one that cannot be ordered") {
    source->no_tickets_of = 1;
    Open();
    Begin(0, 4);
    CHECK_FALSE(abort->raised());
    Prepare();
    CHECK(abort->cause() == "feed of vision dp3 (step 41 mb 1): the index is gone");
  }
  CHECK(stages[0]->Count<Input>() == 1);
}

}  // namespace troupe
