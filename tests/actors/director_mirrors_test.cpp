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
    config.mirrors = {{1, 0}, {0, 1}};
  }

  void StoreState() {
    Give<SaveState>(*updates[0], StateSaved{{{3, 0, {}}, {5, 1, {}}}});
    Give<SaveState>(*updates[1], StateSaved{{{8, 3, {}}}});
    Give<SaveState>(*updates[2], StateSaved{});
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
  CHECK(second.Oldest<HoldMirror>().from == 0);
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
  config.updates.resize(1);  // it needs no norm of another, so it may be asked early
  updates.resize(1);
  Start(4);
  Complete(0);
  GiveNorms(1);
  TakeLog();
  Give<SaveState>(*updates[0], StateSaved{{{3, 0, {}}, {5, 1, {}}}});
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
