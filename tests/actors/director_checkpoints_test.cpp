// The checkpoints of a director: the test plays the actors that write them.
#include <catch2/catch.hpp>

#include "tests/actors/director_fixture.hpp"

namespace troupe {

/// What a shard has written.
static ShardStored Hash(const std::string& sha256) {
  ShardStored answer;
  answer.stored.sha256 = sha256;
  return answer;
}

/// In the place of a manifest.
static std::string ListOf(std::int64_t, const std::vector<SavedShard>& shards) {
  std::string list;
  for (const SavedShard& shard : shards) {
    list += (list.empty() ? "" : ", ") + std::to_string(shard.rank) + "/" +
            std::to_string(shard.stage) + " " + shard.stored.sha256;
  }
  return list;
}

TEST_CASE_METHOD(DirectorFixture, "a checkpoint is written between its step and the next round",
                 "[actors][director]") {
  std::vector<std::string> complete;
  config.checkpoints.every = 2;
  config.checkpoints.folder = [](std::int64_t steps) { return "step " + std::to_string(steps); };
  config.checkpoints.manifest = ListOf;
  config.checkpoints.completed = [&](std::int64_t steps) { Completed(steps, complete); };
  Start(4);
  for (const std::int64_t round : {0, 1}) {
    GiveNorms(round);
    FinishUpdates(round);
    ReportAll(round);
  }
  CHECK(RoundsBegun() == 2);  // although one is done: nothing may begin after a due round
  REQUIRE(devices.Count<ToSet<SaveShard>>() == 1);
  const SaveShard save = devices.Oldest<ToSet<SaveShard>>().parts[1].second;
  CHECK(save.stage == 1);
  CHECK(save.order.folder == "step 2");
  CHECK(save.order.step == 2);
  CHECK_FALSE(save.copied);
  CHECK(save.round == 2);
  Give<ToSet<SaveShard>>(more_devices, FromSet<ShardStored>{{Hash("c")}});
  CHECK(complete.empty());
  CHECK(RoundsBegun() == 2);
  Give<ToSet<SaveShard>>(devices, FromSet<ShardStored>{{Hash("a"), Hash("b")}});
  CHECK(complete.empty());
  CHECK(RoundsBegun() == 2);
  Publish();
  CHECK(complete == std::vector<std::string>{"step 2 of 2", "3/0 a, 5/1 b, 8/3 c"});
  CHECK(RoundsBegun() == 4);
}

namespace {

/// The first two shards belong to the updates, the third to none.
class SavingDirector : public DirectorFixture {
 public:
  SavingDirector() {
    config.checkpoints.async = true;
    config.checkpoints.every = 2;
    config.checkpoints.folder = [](std::int64_t steps) { return "step " + std::to_string(steps); };
    config.checkpoints.manifest = ListOf;
    config.checkpoints.steps = [] { return std::vector<std::int64_t>{1}; };
    config.checkpoints.completed = [this](std::int64_t steps) { Completed(steps, complete); };
    config.constant_shards = {{more_devices.As<LockStep>(), {{{8, 3}}}}};
  }

  /// The shards without an update are copied before the first round.
  void StartCopied(std::int64_t rounds) {
    Start(rounds);
    CHECK(RoundsBegun() == 0);
    Give<ToSet<CopyState>>(more_devices, FromSet<StateCopied>{{{}}});
    CHECK(RoundsBegun() > 0);
  }
  /// The third update owns no shard.
  void FinishSaving() {
    Give<ToSet<SaveShard>>(more_devices, FromSet<ShardStored>{{Hash("c")}});
    Give<SaveState>(*updates[1], StateSaved{{{5, 1, Hash("b").stored}}});
    Give<SaveState>(*updates[2], StateSaved{});
    Give<SaveState>(*updates[0], StateSaved{{{3, 0, Hash("a").stored}}});
  }

  std::vector<std::string> complete;
};

}  // namespace

TEST_CASE_METHOD(SavingDirector, "an asynchronous checkpoint delays no round",
                 "[actors][director]") {
  StartCopied(5);
  CHECK(updates[0]->Count<SaveState>() == 0);
  TakeLog();
  Complete(0);
  CHECK(RoundsBegun() == 3);
  REQUIRE(updates[0]->Count<SaveState>() == 1);
  const SaveState save = updates[0]->Oldest<SaveState>();
  CHECK(save.round == 1);
  CHECK(save.order.folder == "step 2");
  CHECK(save.order.step == 2);
  const ProbeLog log = TakeLog();
  const auto next = std::find(log.begin(), log.end(), "update 0: UpdateRound");
  CHECK(std::find(log.begin(), next, "update 0: SaveState") != next);  // before the state changes
  FinishSaving();
  CHECK(more_devices.Received<ToSet<SaveShard>>().at(0).parts[0].second.copied);
  CHECK(complete.empty());  // the observer has not seen the step
  Complete(1);
  CHECK(complete.empty());
  Publish();
  CHECK(complete == std::vector<std::string>{"step 2 of 2", "3/0 a, 5/1 b, 8/3 c"});
  CHECK(RoundsBegun() == 4);
  Complete(2);
  CHECK(updates[0]->Count<SaveState>() == 2);  // that of step 4
  CHECK(observer->warnings.empty());
}

TEST_CASE_METHOD(SavingDirector, "a checkpoint that is due while another is written comes later",
                 "[actors][director]") {
  StartCopied(8);
  for (const std::int64_t round : {0, 1, 2, 3}) Complete(round);
  CHECK(RoundsBegun() == 6);
  CHECK(updates[0]->Count<SaveState>() == 1);
  REQUIRE(observer->warnings.size() == 1);
  CHECK_THAT(observer->warnings[0],
             Catch::StartsWith("the checkpoint of step 4 comes later: that of step 2 is still "
                               "being written, for "));
  FinishSaving();
  Publish();
  CHECK(complete.at(0) == "step 2 of 2");
  CHECK(updates[0]->Count<SaveState>() == 1);  // the fifth and the sixth step have begun
  Complete(4);
  REQUIRE(updates[0]->Count<SaveState>() == 2);
  CHECK(updates[0]->Oldest<SaveState>().order.step == 6);
  CHECK(observer->warnings.size() == 1);
}

TEST_CASE_METHOD(SavingDirector, "the manifest is on all other disks before it is on the first",
                 "[actors][director]") {
  Probe& other = AddProbe("another node");
  config.apart = {other.As<ManifestDisk>()};
  config.checkpoints.async = GENERATE(false, true);
  if (config.checkpoints.async) {
    StartCopied(4);
  } else {
    Start(4);
  }
  Complete(0);
  Complete(1);
  if (config.checkpoints.async) {
    CHECK(updates[0]->Oldest<SaveState>().order.many_disks);
    FinishSaving();
  } else {
    CHECK(devices.Oldest<ToSet<SaveShard>>().parts[0].second.order.many_disks);
    Give<ToSet<SaveShard>>(more_devices, FromSet<ShardStored>{{Hash("c")}});
    Give<ToSet<SaveShard>>(devices, FromSet<ShardStored>{{Hash("a"), Hash("b")}});
  }
  CHECK(complete.empty());
  CHECK(RoundsBegun() == (config.checkpoints.async ? 4 : 2));
  CHECK(other.Oldest<PublishManifest>().folder == "step 2");
  CHECK(other.Oldest<PublishManifest>().text == "3/0 a, 5/1 b, 8/3 c");
  CHECK(other.Oldest<PublishManifest>().steps == std::vector<std::int64_t>{1, 2});
  CHECK(disk.Count<PublishManifest>() == 0);
  Give<PublishManifest>(other, ManifestPublished{});
  CHECK(complete.empty());
  CHECK(disk.Oldest<PublishManifest>().steps.empty());
  Publish();
  CHECK(complete == std::vector<std::string>{"step 2 of 2", "3/0 a, 5/1 b, 8/3 c"});
  CHECK(RoundsBegun() == 4);
}

TEST_CASE_METHOD(SavingDirector, "a job waits for its asynchronous checkpoint before it ends",
                 "[actors][director]") {
  StartCopied(2);
  Complete(0);
  Complete(1);
  CHECK(devices.Count<ToSet<Inspect>>() == 0);
  FinishSaving();
  Publish();
  CHECK(complete.size() == 2);
  ShowTensors();
  REQUIRE(done->answers.size() == 1);
  CHECK(done->answers[0].failure.empty());
}

TEST_CASE_METHOD(SavingDirector, "a job that is to stop saves its last step while nothing runs",
                 "[actors][director]") {
  StartCopied(9);
  Complete(0);
  CHECK(updates[0]->Oldest<SaveState>().order.step == 2);
  FinishSaving();
  Complete(1);
  Publish();
  Complete(2);
  CHECK(updates[0]->Oldest<SaveState>().order.step == 4);
  Send(director, StopSoon{});
  Complete(3);
  Complete(4);
  CHECK(devices.Count<ToSet<SaveShard>>() == 0);  // the fourth step is being saved
  FinishSaving();
  Publish();
  CHECK(complete.front() == "step 4 of 4");
  Give<ToSet<SaveShard>>(devices, FromSet<ShardStored>{{Hash("d"), Hash("e")}});
  Give<ToSet<SaveShard>>(more_devices, FromSet<ShardStored>{{Hash("f")}});
  Publish();
  CHECK(complete.front() == "step 5 of 5");
  ShowTensors();
  CHECK(done->answers.size() == 1);
}

TEST_CASE_METHOD(SavingDirector,
                 "a checkpoint of the last step that had to wait is written at the end",
                 "[actors][director]") {
  StartCopied(4);
  for (const std::int64_t round : {0, 1, 2, 3}) Complete(round);
  CHECK(observer->warnings.size() == 1);
  FinishSaving();
  Publish();
  CHECK(complete.front() == "step 2 of 2");
  CHECK(done->pending());
  Give<ToSet<SaveShard>>(devices, FromSet<ShardStored>{{Hash("d"), Hash("e")}});
  Give<ToSet<SaveShard>>(more_devices, FromSet<ShardStored>{{Hash("f")}});
  Publish();
  CHECK(complete.front() == "step 4 of 4");
  ShowTensors();
  CHECK(done->answers.size() == 1);
}

}  // namespace troupe
