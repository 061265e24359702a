// One update alone: the test plays the director, the stage replicas and the devices.
#include "actors/update_actor.hpp"

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// Two replicas of language.s0 (stage 2) on ranks 4, 5 and of the tied language.s3 (stage 5) on
/// ranks 8, 9.
class UpdateFixture : public ActorFixture {
 public:
  UpdateFixture() {
    UpdateConfig config;
    config.name = "update of language.s0";
    config.shards = {{4, 2}, {5, 2}, {8, 5}, {9, 5}};
    for (const int at : {2, 5}) {
      for (const int dp : {0, 1}) {
        config.replicas.push_back({.kind = ActorKind::kStage, .stage = at, .replica = dp});
      }
    }
    config.devices = devices.As<LockStep>();
    config.abort = abort;
    update = Spawn(RunUpdate, std::move(config));
  }

  auto Begin(std::int64_t round, bool wait) {
    UpdateRound begin;
    begin.round = round;
    begin.step = {round + 1, 1.0, 0.5};
    begin.wait = wait;
    begin.place = 1;
    return Ask<SquaredNorm>(update, begin);
  }
  auto Done(std::int64_t round, int stage, int dp) {
    return Ask<Updated>(update, BackwardsDone{round, stage, dp});
  }
  std::vector<std::shared_ptr<Answered<Updated>>> AllDone(std::int64_t round) {
    return {Done(round, 2, 0), Done(round, 2, 1), Done(round, 5, 0), Done(round, 5, 1)};
  }
  /// The squared norms of the others: 7 and 11, of three updates, of which this is the second.
  auto Apply(std::int64_t round, double clip_norm) {
    return Ask<UpdateDone>(update, ApplyUpdate{round, {7.0, 0.0, 11.0}, clip_norm});
  }
  /// Squared norms of the shards: 1, 2, 4, 8 times `scale`.
  void FinishReduction(double scale = 1.0) {
    FromSet<GradientsReduced> done;
    for (const double norm : {1.0, 2.0, 4.0, 8.0}) {
      const double value = norm * scale;
      const std::string projector = norm < 4.0 ? "vision_to_language" : "audio_to_language";
      done.parts.push_back(
          {100, {value, {{"language", 0.75 * value}, {projector, 0.25 * value}}, {}}});
    }
    Give<ToSet<ReduceGradients>>(devices, done);
  }
  void FinishStep() {
    Give<ToSet<UpdateParameters>>(devices, FromSet<ParametersUpdated>{{{1}, {2}, {3}, {4}}});
  }

  Probe& devices = AddProbe("devices");
  Update update;
};

const ProbeLog kCopy = {"devices: CopyState"};
const ProbeLog kReduce = {"devices: ReduceGradients"};
const ProbeLog kStep = {"devices: UpdateParameters"};

/// The (rank, stage) pairs of a command.
template <class Command>
std::vector<std::pair<int, int>> ShardsOf(const ToSet<Command>& set) {
  std::vector<std::pair<int, int>> shards;
  for (const auto& [rank, command] : set.parts) shards.emplace_back(rank, command.stage);
  return shards;
}

}  // namespace

TEST_CASE_METHOD(UpdateFixture,
                 "an update reduces when its round and the last backward of all replicas are here",
                 "[actors][update]") {
  Done(3, 5, 1);
  Done(3, 2, 0);
  Done(3, 2, 1);
  const auto norm = Begin(3, true);
  CHECK(TakeLog().empty());
  Done(3, 5, 0);
  CHECK(TakeLog() == kReduce);
  const auto set = devices.Oldest<ToSet<ReduceGradients>>();
  CHECK(ShardsOf(set) == std::vector<std::pair<int, int>>{{4, 2}, {5, 2}, {8, 5}, {9, 5}});
  for (const auto& [rank, command] : set.parts) CHECK(command.round == 3);
  CHECK(norm->pending());
  FinishReduction();
  REQUIRE(norm->answers.size() == 1);
  CHECK(norm->answers[0].round == 3);
  CHECK(norm->answers[0].value == 15.0);
  CHECK(norm->answers[0].parts == std::map<std::string, double>{{"language", 11.25},
                                                                {"vision_to_language", 0.75},
                                                                {"audio_to_language", 3.0}});
}

TEST_CASE_METHOD(UpdateFixture,
                 "a round that waits is reduced, clipped by the norm of all, and then stepped",
                 "[actors][update]") {
  Begin(0, true);
  const auto replicas = AllDone(0);
  CHECK(TakeLog() == kReduce);
  FinishReduction();
  CHECK(TakeLog().empty());  // the norms of the others are not here
  const auto applied = Apply(0, 1.5);
  CHECK(TakeLog() == kStep);
  const auto set = devices.Oldest<ToSet<UpdateParameters>>();
  CHECK(ShardsOf(set) == std::vector<std::pair<int, int>>{{4, 2}, {5, 2}, {8, 5}, {9, 5}});
  for (const auto& [rank, command] : set.parts) {
    CHECK(command.step.step == 1);
    CHECK(command.step.schedule == 0.5);
    CHECK(command.step.clip_coefficient == Approx(1.5 / std::sqrt(7.0 + 15.0 + 11.0)));
  }
  CHECK(applied->pending());
  for (const auto& replica : replicas) CHECK(replica->pending());
  FinishStep();
  REQUIRE(applied->answers.size() == 1);
  CHECK(applied->answers[0].round == 0);
  CHECK(applied->answers[0].busy_ns == 4 * 100 + 10);
  for (const auto& replica : replicas) CHECK(replica->answers.size() == 1);
}

TEST_CASE_METHOD(UpdateFixture, "norms that come before the reduction ends are used when it does",
                 "[actors][update]") {
  Begin(0, true);
  Apply(0, 0.0);
  AllDone(0);
  CHECK(TakeLog() == kReduce);
  FinishReduction();
  CHECK(TakeLog() == kStep);
  CHECK(devices.Oldest<ToSet<UpdateParameters>>().parts[0].second.step.clip_coefficient == 1.0);
}

TEST_CASE_METHOD(UpdateFixture, "a round that does not wait is stepped as soon as it is reduced",
                 "[actors][update]") {
  Begin(0, false);
  const auto replicas = AllDone(0);
  FinishReduction();
  CHECK(TakeLog() == ProbeLog{kReduce[0], kStep[0]});
  CHECK(devices.Oldest<ToSet<UpdateParameters>>().parts[0].second.step.clip_coefficient == 1.0);
  FinishStep();
  for (const auto& replica : replicas) CHECK(replica->answers.size() == 1);
  CHECK(Apply(0, 1.5)->answers.size() == 1);  // comes all the same
  CHECK(TakeLog().empty());
}

TEST_CASE_METHOD(UpdateFixture, "a round that begins early waits for the end of the one before",
                 "[actors][update]") {
  Begin(0, true);
  const auto next = Begin(1, true);
  Apply(1, 1.5);  // of the next round: it steps nothing now
  AllDone(0);
  FinishReduction();
  CHECK(TakeLog() == kReduce);
  CHECK(next->pending());
  Apply(0, 1.5);
  FinishStep();
  AllDone(1);
  CHECK(devices.Oldest<ToSet<ReduceGradients>>().parts[0].second.round == 1);
  FinishReduction(2.0);
  CHECK(next->answers.at(0).value == 30.0);
  const auto steps = devices.Received<ToSet<UpdateParameters>>();
  REQUIRE(steps.size() == 2);
  CHECK(steps[1].parts[0].second.round == 1);
}

TEST_CASE_METHOD(UpdateFixture, "gradients whose norm is not finite never reach the parameters",
                 "[actors][update]") {
  Begin(0, true);
  AllDone(0);
  Apply(0, 1.5);
  FinishReduction(std::numeric_limits<double>::infinity());
  CHECK(TakeLog() == kReduce);
}

TEST_CASE_METHOD(UpdateFixture, "gradients of another round are refused by name",
                 "[actors][update]") {
  const auto norm = Begin(4, true);
  const auto replica = Done(3, 2, 0);
  const std::vector<std::string> expected = {
      "update of language.s0: expected the gradients of round 4, got those of round 3"};
  CHECK(norm->errors == expected);
  CHECK(replica->errors == expected);
  CHECK(abort->cause() == expected[0]);
  CHECK(TakeLog().empty());
}

TEST_CASE_METHOD(UpdateFixture, "a failed reduction fails every request that waits for the update",
                 "[actors][update]") {
  const auto norm = Begin(0, true);
  const auto next = Begin(1, true);
  const auto applied = Apply(0, 1.5);
  const auto replicas = AllDone(0);
  Refuse<ToSet<ReduceGradients>>(devices, "rank 8: a peer is gone");
  const std::vector<std::string> expected = {"rank 8: a peer is gone"};
  CHECK(norm->errors == expected);
  CHECK(next->errors == expected);
  CHECK(applied->errors == expected);
  for (const auto& replica : replicas) CHECK(replica->errors == expected);
  CHECK(abort->cause() == expected[0]);
  // So does whatever comes later.
  CHECK(Apply(1, 1.5)->errors == expected);
  CHECK(Begin(2, true)->errors == expected);
  CHECK(Done(1, 2, 0)->errors == expected);
}

TEST_CASE_METHOD(UpdateFixture,
                 "a state is copied after its step, and written while later rounds run",
                 "[actors][update]") {
  const auto saved = Ask<StateSaved>(update, SaveState{0, {"step 1", 1}});
  Begin(0, false);
  AllDone(0);
  CHECK(TakeLog() == kReduce);
  FinishReduction();
  CHECK(TakeLog() == kStep);
  FinishStep();
  CHECK(TakeLog() == kCopy);
  const auto copy = devices.Oldest<ToSet<CopyState>>();
  CHECK(ShardsOf(copy) == std::vector<std::pair<int, int>>{{4, 2}, {5, 2}, {8, 5}, {9, 5}});
  CHECK(copy.parts[0].second.step == 1);
  CHECK(copy.parts[0].second.round == 1);
  const auto applied = Apply(0, 0.0);
  CHECK(applied->answers.size() == 1);  // the round does not wait for its copy

  Begin(1, false);
  AllDone(1);
  CHECK(TakeLog() == kReduce);
  FinishReduction();
  CHECK(TakeLog().empty());  // nothing steps while it is copied
  Give<ToSet<CopyState>>(devices, FromSet<StateCopied>{{{}, {}, {}, {}}});
  CHECK(TakeLog() == ProbeLog{"devices: SaveShard", "devices: UpdateParameters"});
  const auto save = devices.Oldest<ToSet<SaveShard>>();
  CHECK(ShardsOf(save) == ShardsOf(copy));
  for (const auto& [rank, command] : save.parts) {
    CHECK(command.order.folder == "step 1");
    CHECK(command.order.step == 1);
    CHECK(command.round == 1);
    CHECK(command.copied);
  }
  for (const auto& [rank, command] : devices.Oldest<ToSet<UpdateParameters>>().parts) {
    CHECK(command.held_ns > 0);
  }
  FinishStep();
  CHECK(TakeLog().empty());
  CHECK(saved->pending());
  FromSet<ShardStored> stored;
  for (const char* const sum : {"a", "b", "c", "d"}) {
    stored.parts.emplace_back();
    stored.parts.back().stored.sha256 = sum;
  }
  stored.parts[1].made = {{6, 4, {.file = "of another"}}};
  Give<ToSet<SaveShard>>(devices, stored);
  REQUIRE(saved->answers.size() == 1);
  const std::vector<SavedShard>& shards = saved->answers[0].shards;
  REQUIRE(shards.size() == 4);
  CHECK(shards[2].rank == 8);
  CHECK(shards[2].stage == 5);
  CHECK(shards[2].stored.sha256 == "c");
  REQUIRE(saved->answers[0].made.size() == 1);
  CHECK(saved->answers[0].made[0].stored.file == "of another");
}

TEST_CASE_METHOD(UpdateFixture, "a state may be asked for until the next round begins",
                 "[actors][update]") {
  Begin(0, false);
  AllDone(0);
  FinishReduction();
  CHECK(devices.Oldest<ToSet<UpdateParameters>>().parts[0].second.held_ns == 0);
  FinishStep();
  if (GENERATE(false, true)) Apply(0, 0.0);
  TakeLog();
  AllDone(1);
  Ask<StateSaved>(update, SaveState{0, {"step 1", 1}});
  CHECK(TakeLog() == kCopy);
  Give<ToSet<CopyState>>(devices, FromSet<StateCopied>{{{}, {}, {}, {}}});
  CHECK(TakeLog() == ProbeLog{"devices: SaveShard"});
}

TEST_CASE_METHOD(UpdateFixture, "a state that is mirrored and written is copied once",
                 "[actors][update]") {
  Begin(0, false);
  AllDone(0);
  FinishReduction();
  FinishStep();
  TakeLog();
  const auto mirrored = Ask<StateSaved>(update, SaveState{0, {"memory 1", 1, false, true}});
  const auto written = Ask<StateSaved>(update, SaveState{0, {"step 1", 1}});
  CHECK(TakeLog() == kCopy);
  Give<ToSet<CopyState>>(devices, FromSet<StateCopied>{{{}, {}, {}, {}}});
  CHECK(TakeLog() == ProbeLog{"devices: SaveShard", "devices: SaveShard"});
  const auto saves = devices.Received<ToSet<SaveShard>>();
  CHECK(saves.at(0).parts[0].second.order.in_memory);
  CHECK_FALSE(saves.at(1).parts[0].second.order.in_memory);
  const FromSet<ShardStored> stored{{{}, {}, {}, {}}};
  Give<ToSet<SaveShard>>(devices, stored);
  CHECK(mirrored->answers.size() == 1);
  CHECK(written->pending());
  const auto late = Ask<StateSaved>(update, SaveState{0, {"step 1 again", 1}});
  CHECK(TakeLog() == ProbeLog{"devices: SaveShard"});
}

TEST_CASE_METHOD(UpdateFixture, "a state that is gone is not stored", "[actors][update]") {
  Begin(0, false);
  AllDone(0);
  FinishReduction();
  const bool has_stepped = GENERATE(false, true);  // or is stepping
  if (has_stepped) FinishStep();
  const auto late = Ask<StateSaved>(update, SaveState{-1, {"memory 7", 7, false, true}});
  REQUIRE(late->errors.size() == 1);
  CHECK_THAT(late->errors[0], Catch::EndsWith(": the state after round -1 is gone"));
  CHECK(abort->raised());
}

TEST_CASE_METHOD(UpdateFixture, "the state before the first round can be stored",
                 "[actors][update]") {
  Ask<StateSaved>(update, SaveState{-1, {"memory 7", 7, false, true}});
  CHECK(TakeLog() == kCopy);
}

TEST_CASE_METHOD(UpdateFixture, "a copy that fails fails the update, and a write, too",
                 "[actors][update]") {
  const auto saved = Ask<StateSaved>(update, SaveState{0, {"step 1", 1}});
  Begin(0, false);
  AllDone(0);
  FinishReduction();
  FinishStep();
  if (GENERATE(false, true)) {
    Give<ToSet<CopyState>>(devices, FromSet<StateCopied>{{{}, {}, {}, {}}});
    Give<ToSet<SaveShard>>(devices, MakeFailure(Failure("the disk is full")));
  } else {
    Give<ToSet<CopyState>>(devices, MakeFailure(Failure("the disk is full")));
  }
  REQUIRE(saved->errors.size() == 1);
  CHECK(abort->cause() == "the disk is full");
}

}  // namespace troupe
