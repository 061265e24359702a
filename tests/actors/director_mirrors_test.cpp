// The mirrors of a director: the test plays the actors that hold them.
#include <catch2/catch.hpp>

#include "tests/actors/director_fixture.hpp"

namespace troupe {
namespace {

/// Two processes that mirror each other.
class MirroringDirector : public DirectorFixture {
 public:
  MirroringDirector() {
    config.checkpoints.mirror_every = 1;
    config.checkpoints.held_folder = [](std::int64_t steps) {
      return "memory " + std::to_string(steps);
    };
    config.checkpoints.manifest = [](std::int64_t steps, const std::vector<SavedShard>& shards) {
      return std::to_string(shards.size()) + " shards of " + std::to_string(steps);
    };
    config.holders = {first.As<Holder>(), second.As<Holder>()};
    config.mirrors.sent = {{1, 0, {{3, 0}, {5, 1}}}, {0, 1, {{8, 3}}}};
    config.mirrors.made = {{{9, 3}, {.module = "vision", .rank = 8}}};
  }

  /// The shard on rank 5 stores nothing; a replica makes the file of the one on rank 8.
  void StoreState(const StoredShard& made = StoredBy("n0", 1)) {
    Give<SaveState>(*updates[0], StateSaved{{{3, 0, {.file = "first"}}, {5, 1, {}}}});
    StateSaved saved{{{8, 3, StoredBy("n1", 1)}}, {}};
    if (!made.file.empty()) saved.made.push_back({8, 3, made});
    Give<SaveState>(*updates[1], saved);
    Give<SaveState>(*updates[2], StateSaved{});
  }
  static StoredShard StoredBy(const std::string& process, std::uint64_t digest) {
    return {.file = "second",
            .process = process,
            .tensors = {{TensorKind::kParameter, "same", {4}, DType::kFloat32, 7},
                        {TensorKind::kFirstMoment, "vision.norm", {4}, DType::kFloat32, digest}}};
  }
  void HoldMirrors() {
    Give<HoldMirror>(first, MirrorHeld{});
    Give<HoldMirror>(second, MirrorHeld{});
  }
  void CompleteMirrors() {
    Give<CompleteHeld>(first, HeldCompleted{});
    Give<CompleteHeld>(second, HeldCompleted{});
  }
  std::size_t Applied() const {
    std::size_t applied = 0;
    for (Probe* update : updates) applied += update->Count<ApplyUpdate>();
    return applied;
  }

  Probe& first = AddProbe("first node");
  Probe& second = AddProbe("second node");
};

}  // namespace

TEST_CASE_METHOD(MirroringDirector, "an update waits until all processes hold the state before it",
                 "[actors][director]") {
  Start(3);
  REQUIRE(updates[0]->Count<SaveState>() == 1);
  const SaveState save = updates[0]->Oldest<SaveState>();
  CHECK(save.round == 0);
  CHECK(save.order.folder == "memory 1");
  CHECK(save.order.step == 1);
  CHECK(save.order.in_memory);
  CHECK(updates[0]->Oldest<UpdateRound>().wait);
  Complete(0);
  GiveNorms(1);
  CHECK(Applied() == 3);  // those of the first round
  CHECK(first.Count<HoldMirror>() == 0);
  StoreState();
  REQUIRE(first.Count<HoldMirror>() == 1);
  CHECK(first.Oldest<HoldMirror>().folder == "memory 1");
  CHECK(first.Oldest<HoldMirror>().from == 1);
  CHECK(first.Oldest<HoldMirror>().files == std::vector<std::string>{"second"});
  CHECK(second.Oldest<HoldMirror>().from == 0);
  CHECK(second.Oldest<HoldMirror>().files == std::vector<std::string>{"first"});
  Give<HoldMirror>(first, MirrorHeld{});
  CHECK(first.Count<CompleteHeld>() == 0);  // one mirror is not there yet
  Give<HoldMirror>(second, MirrorHeld{});
  REQUIRE(first.Count<CompleteHeld>() == 1);
  CHECK(first.Oldest<CompleteHeld>().manifest == "3 shards of 1");
  Give<CompleteHeld>(first, HeldCompleted{});
  CHECK(Applied() == 3);
  Give<CompleteHeld>(second, HeldCompleted{});
  CHECK(Applied() == 6);
  CHECK(updates[0]->Received<ApplyUpdate>().back().held_ns > 0);
  CHECK(updates[0]->Count<SaveState>() == 2);  // the next state
}

TEST_CASE_METHOD(MirroringDirector, "a state is asked for before an update may change it",
                 "[actors][director]") {
  config.mirrors.made.clear();
  config.updates.resize(1);  // it needs no norm of another, so it may be asked early
  updates.resize(1);
  Start(4);
  Complete(0);
  GiveNorms(1);
  TakeLog();
  Give<SaveState>(*updates[0], StateSaved{{{3, 0, {.file = "first"}}, {8, 3, {.file = "second"}}}});
  HoldMirrors();
  CompleteMirrors();
  const ProbeLog log = TakeLog();
  const auto applied = std::find(log.begin(), log.end(), "update 0: ApplyUpdate");
  CHECK(applied != log.end());
  CHECK(std::find(log.begin(), applied, "update 0: SaveState") != applied);
  FinishUpdates(1);
  ReportAll(1);
  GiveNorms(2);
  CHECK(updates[0]->Count<ApplyUpdate>() == 2);  // the state after the second is not held yet
}

TEST_CASE_METHOD(MirroringDirector, "a state is complete when its step is reported",
                 "[actors][director]") {
  Start(2);
  StoreState();
  HoldMirrors();
  CHECK(first.Count<CompleteHeld>() == 0);
  Complete(0);
  CHECK(first.Count<CompleteHeld>() == 1);
}

TEST_CASE_METHOD(MirroringDirector, "a job that goes on from memory writes that state to the disk",
                 "[actors][director]") {
  config.checkpoints.resume = {.folder = "memory 7", .in_memory = true};
  config.checkpoints.step = 7;
  config.checkpoints.async = true;
  config.checkpoints.every = 50;
  config.checkpoints.folder = [](std::int64_t steps) { return "step " + std::to_string(steps); };
  config.rounds = [](std::int64_t number) -> std::optional<Round> {
    return number < 3 ? std::optional(Round{number, true, 7 + number, 2, 1.0}) : std::nullopt;
  };
  director = Spawn(RunDirector, config);
  done = Ask<JobDone>(director, RunJob{});
  Give<ToSet<LoadShard>>(devices, FromSet<ShardLoaded>{{{}, {}}});
  Give<ToSet<LoadShard>>(more_devices, FromSet<ShardLoaded>{{{}}});
  const auto saves = updates[0]->Received<SaveState>();
  REQUIRE(saves.size() == 2);
  CHECK(saves[0].order.folder == "step 7");
  CHECK(saves[0].round == -1);
  CHECK(saves[1].order.folder == "memory 7");
  CHECK(saves[1].round == -1);
}

TEST_CASE_METHOD(MirroringDirector, "a job ends when its last mirror is complete",
                 "[actors][director]") {
  Start(1);
  Complete(0);
  CHECK(devices.Count<ToSet<Inspect>>() == 0);
  StoreState();
  HoldMirrors();
  CompleteMirrors();
  ShowTensors();
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.empty());
}

TEST_CASE_METHOD(MirroringDirector, "replicas that differ fail the job", "[actors][director]") {
  Start(3);
  Complete(0);
  StoreState(StoredBy("n0", 2));
  REQUIRE(done->answers.size() == 1);
  CHECK_THAT(done->answers[0].failure.text,
             Catch::StartsWith("the replicas of second on n1 and n0 hold different values of first "
                               "moment vision.norm: "));
}

TEST_CASE_METHOD(MirroringDirector, "a replica that has not made its mirror fails the job",
                 "[actors][director]") {
  Start(3);
  Complete(0);
  StoreState({});
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.text == "a mirror of rank 8, stage 3 was not made");
}

TEST_CASE_METHOD(MirroringDirector, "nothing is sent of shards that store nothing",
                 "[actors][director]") {
  config.mirrors.sent = {{0, 1, {{5, 1}}}, {1, 0, {{5, 1}, {3, 0}}}};
  Start(2);
  Complete(0);
  StoreState();
  CHECK(first.Count<HoldMirror>() == 0);
  REQUIRE(second.Count<HoldMirror>() == 1);
  CHECK(second.Oldest<HoldMirror>().files == std::vector<std::string>{"first"});
}

TEST_CASE_METHOD(MirroringDirector, "a job whose mirror cannot be held fails",
                 "[actors][director]") {
  Start(3);
  Complete(0);
  StoreState();
  Refuse<HoldMirror>(first, "the mirror did not come");
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.text == "the mirror did not come");
}

}  // namespace troupe
