// One phase alone: the test plays the encoder's replicas, the language model and the devices.
#include "actors/phase_actor.hpp"

#include <catch2/catch.hpp>

#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// Two replicas of an encoder on ranks 4 and 6, which share them with a language model of two
/// tensor-parallel shards. Two samples per microbatch, two microbatches per window. Replica e
/// encodes sample e of each microbatch.
class PhaseFixture : public ActorFixture {
 public:
  PhaseFixture() {
    config.name = "phase vision>language";
    config.stage = 1;
    config.group = 3;
    config.ranks = {4, 6};
    config.encoder = Grid({.dp = 2}, {4, 6});
    config.language = Grid({.tp = 2}, {4, 6});
    config.samples_per_microbatch = 2;
    config.units = UnitLength(2);
    config.stages = {language.As<Downstream>()};
    for (const int e : {0, 1}) {
      config.encoders.push_back({.kind = ActorKind::kStage, .replica = e, .of = "vision.s0"});
    }
    config.link = 5;
    config.devices = devices.As<LockStep>();
    config.abort = abort;
  }
  void Offload(std::int64_t restore_ahead) {
    config.offloads = {{4, 0}, {6, 0}, {4, 1}, {6, 1}};
    config.restore_ahead = restore_ahead;
  }
  void Open() { phase = Spawn(RunPhase, config); }
  void Begin(std::int64_t number, std::int64_t microbatches, bool train = true) {
    Send(phase, RoundBegin{Round{number, train, number, microbatches, 1.0}});
  }
  /// Replica `e` brings window `unit`: for each of its samples, by number in the window, the values
  /// of its rows.
  auto Encode(int e, std::int64_t unit,
              const std::vector<std::pair<std::int64_t, std::vector<double>>>& samples) {
    auto table = std::make_shared<RowTable>();
    std::vector<double> values;
    for (const auto& [sample, rows] : samples) {
      table->samples.push_back(sample);
      table->rows.push_back(std::ssize(rows));
      values.insert(values.end(), rows.begin(), rows.end());
    }
    return Ask<Gradient>(phase, Activation{unit, e, {RowsOf(values)}, table, {}});
  }
  /// The window of most cases: samples of 1, 2, 3 and 1 rows; row r of sample n is 100 * n + r.
  std::vector<std::shared_ptr<Answered<Gradient>>> EncodeWindow(std::int64_t unit = 0) {
    return {Encode(0, unit, {{0, {0}}, {2, {200, 201, 202}}}),
            Encode(1, unit, {{1, {100, 101}}, {3, {300}}})};
  }
  /// The devices do the oldest exchange as its plan says.
  void DoExchange() {
    const auto set = devices.Oldest<ToSet<RunExchange>>();
    const ExchangePlan& plan = *set.parts[0].second.plan;
    std::vector<std::vector<double>> given(set.parts.size());
    for (std::size_t place = 0; place < set.parts.size(); ++place) {
      for (const Buffer& piece : set.parts[place].second.rows) {
        const auto values = ValuesOf(piece);
        given[place].insert(given[place].end(), values.begin(), values.end());
      }
    }
    std::vector<std::vector<double>> got;
    for (const auto rows : plan.rows_out) got.emplace_back(static_cast<std::size_t>(rows), -1e9);
    for (const RowMove& move : plan.moves) {
      for (std::int64_t r = 0; r < move.source_rows.size(); ++r) {
        got.at(static_cast<std::size_t>(move.destination))
            .at(static_cast<std::size_t>(move.destination_rows.begin + r)) =
            given.at(static_cast<std::size_t>(move.source))
                .at(static_cast<std::size_t>(move.source_rows.begin + r));
      }
    }
    FromSet<ExchangeDone> done;
    for (const auto& rows : got) done.parts.push_back({0, RowsOf(rows)});
    Give<ToSet<RunExchange>>(devices, done);
  }
  /// The language model answers its oldest microbatch with its rows, negative and one lower.
  void GiveGradient() {
    const auto got = language.Oldest<Activation>();
    Gradient gradient{got.unit, {}};
    for (const Buffer& shard : got.shards) {
      auto values = ValuesOf(shard);
      for (double& value : values) value = -value - 1;
      gradient.shards.push_back(RowsOf(values));
    }
    Give<Activation>(language, gradient);
  }

  Probe& devices = AddProbe("devices");
  Probe& language = AddProbe("language");
  PhaseConfig config;
  Phase phase;
};

using Values = std::vector<std::vector<double>>;

}  // namespace

TEST_CASE_METHOD(PhaseFixture, "rows that arrive before their round begins wait for it",
                 "[actors][phase]") {
  Open();
  Begin(0, 2);
  const auto later = EncodeWindow(1);
  CHECK(devices.Count<ToSet<RunExchange>>() == 0);
  CHECK(later[0]->pending());
  Begin(1, 2);
  CHECK(devices.Count<ToSet<RunExchange>>() == 1);
}

TEST_CASE_METHOD(PhaseFixture, "rows are exchanged when every encoder replica has brought its own",
                 "[actors][phase]") {
  Open();
  Begin(0, 2);
  Encode(1, 0, {{1, {100, 101}}, {3, {300}}});
  CHECK(TakeLog().empty());
  Encode(0, 0, {{0, {0}}, {2, {200, 201, 202}}});
  CHECK(TakeLog() == ProbeLog{"devices: RunExchange 0"});
  const auto set = devices.Oldest<ToSet<RunExchange>>();
  REQUIRE(set.parts.size() == 2);
  CHECK(set.parts[0].first == 4);
  CHECK(ValuesOf(set.parts[0].second.rows) == Values{{0, 200, 201, 202}});
  CHECK(set.parts[1].first == 6);
  CHECK(ValuesOf(set.parts[1].second.rows) == Values{{100, 101, 300}});
  CHECK(set.parts[1].second.group == 3);
  CHECK(set.parts[1].second.stage == 1);
  CHECK(set.parts[1].second.plan->rows_out == std::vector<std::int64_t>{7, 7});
  CHECK(set.parts[1].second.plan->row_shape == Shape{1});
  CHECK(set.parts[1].second.plan->dtype == DType::kFloat64);
}

TEST_CASE_METHOD(PhaseFixture, "the language model gets the window microbatch by microbatch",
                 "[actors][phase]") {
  Open();
  Begin(0, 2);
  EncodeWindow();
  DoExchange();
  const auto got = language.Received<Activation>();
  REQUIRE(got.size() == 2);
  CHECK(got[0].unit == 0);
  CHECK(got[0].link == 5);
  CHECK(ValuesOf(got[0].shards) == Values{{0, 100, 101}, {0, 100, 101}});
  CHECK(*got[0].rows == RowTable{{0, 1}, {1, 2}});
  CHECK(got[1].unit == 1);
  CHECK(ValuesOf(got[1].shards) == Values{{200, 201, 202, 300}, {200, 201, 202, 300}});
  CHECK(*got[1].rows == RowTable{{0, 1}, {3, 1}});
}

TEST_CASE_METHOD(PhaseFixture, "the gradients of a window go back to the replicas they came from",
                 "[actors][phase]") {
  Open();
  Begin(0, 2);
  const auto asked = EncodeWindow();
  DoExchange();
  TakeLog();
  GiveGradient();
  CHECK(TakeLog().empty());  // one microbatch is missing
  GiveGradient();
  CHECK(TakeLog() == ProbeLog{"devices: RunExchange 0"});
  for (const auto& replica : asked) CHECK(replica->pending());
  DoExchange();
  REQUIRE(asked[0]->answers.size() == 1);
  REQUIRE(asked[1]->answers.size() == 1);
  CHECK(ValuesOf(asked[0]->answers[0].shards) == Values{{-1, -201, -202, -203}});
  CHECK(ValuesOf(asked[1]->answers[0].shards) == Values{{-101, -102, -301}});
}

TEST_CASE_METHOD(PhaseFixture, "windows follow each other over the rounds, the last may be shorter",
                 "[actors][phase]") {
  Open();
  Begin(0, 3);
  Begin(1, 2);
  EncodeWindow(0);
  DoExchange();
  Encode(0, 1, {{0, {7}}});
  Encode(1, 1, {{1, {8}}});
  DoExchange();
  EncodeWindow(2);
  DoExchange();
  std::vector<std::int64_t> units;
  for (const Activation& activation : language.Received<Activation>()) {
    units.push_back(activation.unit);
  }
  CHECK(units == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(ValuesOf(language.Received<Activation>()[2].shards[1]) == std::vector<double>{7, 8});
  CHECK(devices.Received<ToSet<RunExchange>>()[1].parts[0].second.round == 0);
  CHECK(devices.Received<ToSet<RunExchange>>()[2].parts[0].second.round == 1);
}

TEST_CASE_METHOD(PhaseFixture, "a language model without gradients answers the encoder with none",
                 "[actors][phase]") {
  Open();
  Begin(0, 2, false);
  const auto asked = EncodeWindow();
  DoExchange();
  TakeLog();
  for (const std::int64_t unit : {0, 1}) Give<Activation>(language, Gradient{unit, {}});
  CHECK(TakeLog().empty());  // nothing to exchange
  for (const auto& replica : asked) {
    REQUIRE(replica->answers.size() == 1);
    CHECK(replica->answers[0].shards.empty());
  }
}

TEST_CASE_METHOD(PhaseFixture, "the encoder's state leaves before the language model's first rows",
                 "[actors][phase]") {
  Offload(0);
  Open();
  Begin(0, 4);
  EncodeWindow();
  TakeLog();
  DoExchange();
  CHECK(TakeLog() ==
        ProbeLog{"devices: OffloadState 0", "language: Activation 0", "language: Activation 1"});
  std::vector<std::pair<int, int>> shards;
  for (const auto& [rank, command] : devices.Oldest<ToSet<OffloadState>>().parts) {
    shards.emplace_back(rank, command.stage);
  }
  CHECK(shards == config.offloads);
  Give<ToSet<OffloadState>>(devices, FromSet<StateOffloaded>{});
  GiveGradient();
  CHECK(TakeLog().empty());
  GiveGradient();
  CHECK(TakeLog() == ProbeLog{"devices: RestoreState 0", "devices: RunExchange 0"});
  CHECK_FALSE(devices.Oldest<ToSet<RestoreState>>().parts[0].second.moments);  // no update follows
}

TEST_CASE_METHOD(PhaseFixture, "state comes back when few gradients are owed and all has left",
                 "[actors][phase]") {
  Offload(1);
  Open();
  Begin(0, 2);
  EncodeWindow();
  DoExchange();
  TakeLog();
  SECTION("it leaves first") {
    Give<ToSet<OffloadState>>(devices, FromSet<StateOffloaded>{});
    CHECK(TakeLog().empty());
    GiveGradient();
  }
  SECTION("the gradient is first") {
    GiveGradient();
    CHECK(TakeLog().empty());
    Give<ToSet<OffloadState>>(devices, FromSet<StateOffloaded>{});
  }
  CHECK(TakeLog() == ProbeLog{"devices: RestoreState 0"});
  const auto restore = devices.Oldest<ToSet<RestoreState>>();
  CHECK(restore.parts.size() == 4);
  CHECK(restore.parts[3].second.moments);  // the last window of the round: the update comes next
}

TEST_CASE_METHOD(PhaseFixture, "state is asked back before a backward that is on a queue has run",
                 "[actors][phase]") {
  Offload(0);
  config.queued_backwards = 1;
  Open();
  Begin(0, 2);
  EncodeWindow();
  DoExchange();
  Give<ToSet<OffloadState>>(devices, FromSet<StateOffloaded>{});
  TakeLog();
  GiveGradient();  // the last backward is on the queue by now
  CHECK(TakeLog() == ProbeLog{"devices: RestoreState 0"});
}

TEST_CASE_METHOD(PhaseFixture, "the encoder is answered when its state is back, and not before",
                 "[actors][phase]") {
  Offload(1);
  Open();
  Begin(0, 2);
  const auto asked = EncodeWindow();
  DoExchange();
  Give<ToSet<OffloadState>>(devices, FromSet<StateOffloaded>{});
  GiveGradient();
  GiveGradient();
  DoExchange();
  for (const auto& replica : asked) CHECK(replica->pending());
  Give<ToSet<RestoreState>>(devices, FromSet<StateRestored>{});
  REQUIRE(asked[0]->answers.size() == 1);
  CHECK(ValuesOf(asked[1]->answers.at(0).shards) == Values{{-101, -102, -301}});
}

TEST_CASE_METHOD(PhaseFixture, "nothing leaves in an evaluation", "[actors][phase]") {
  Offload(0);
  Open();
  Begin(0, 2, false);
  EncodeWindow();
  DoExchange();
  CHECK(devices.Count<ToSet<OffloadState>>() == 0);
  CHECK(language.Count<Activation>() == 2);
}

TEST_CASE_METHOD(PhaseFixture, "a failure fails every encoder replica that waits",
                 "[actors][phase]") {
  Offload(0);
  Open();
  Begin(0, 2);
  const auto asked = EncodeWindow();
  SECTION("of an exchange") { Refuse<ToSet<RunExchange>>(devices, "it broke"); }
  SECTION("of the language model") {
    DoExchange();
    Refuse<Activation>(language, "it broke");
    GiveGradient();  // comes too late
  }
  SECTION("of an offload") {
    DoExchange();
    Refuse<ToSet<OffloadState>>(devices, "it broke");
  }
  const std::vector<std::string> expected = {"it broke"};
  for (const auto& replica : asked) CHECK(replica->errors == expected);
  CHECK(abort->cause() == "it broke");
  CHECK(Encode(0, 1, {{0, {1}}})->errors == expected);
  CHECK(devices.Count<ToSet<RunExchange>>() == 1);
}

TEST_CASE_METHOD(PhaseFixture, "a round out of turn ends the job by name", "[actors][phase]") {
  Open();
  Begin(0, 2);
  const auto asked = Encode(0, 0, {{0, {0}}, {2, {1}}});
  Begin(2, 2);
  const std::string expected = "phase vision>language: expected round 1 from director, got 2";
  CHECK(abort->cause() == expected);
  CHECK(asked->errors == std::vector<std::string>{expected});
}

}  // namespace troupe
