// The director alone: the test plays the actors that it directs, the data and the observer.
#include "actors/director_actor.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// Round r has 4 * (r + 1) valid tokens.
class CountingSource : public InputSource {
 public:
  std::shared_ptr<const Inputs> Load(const std::string&, int, const Round&, std::int64_t) override {
    throw std::logic_error("a director loads nothing");
  }
  RoundCounts Count(const Round& round) override {
    return {.labels = 4 * (round.number + 1), .tokens = 8, .samples = 2};
  }
};

/// Keeps what it is shown. With an `error`, throws it at the end of a round.
class Observer : public JobObserver {
 public:
  void OnRound(const RoundResult& result) override {
    if (!error.empty()) throw std::runtime_error(error);
    rounds.push_back(result);
  }
  void OnGradients(const Round&, const std::vector<TensorPiece>& pieces) override {
    for (const TensorPiece& piece : pieces) shown.push_back("gradient of " + piece.name);
  }
  void OnFinished(const std::vector<TensorPiece>& pieces, const FetchPiece&) override {
    for (const TensorPiece& piece : pieces) shown.push_back("final " + piece.name);
  }
  void OnWarning(const std::string& line) override { warnings.push_back(line); }
  std::vector<RoundResult> rounds;
  std::vector<std::string> shown;
  std::vector<std::string> warnings;
  std::string error;
};

/// Stages vision.s0, language.s0 of two replicas, and audio.s0; the last three are sinks. Updates
/// of the three modules, a feed, a phase, and two lock steps with two shards and one.
class DirectorFixture : public ActorFixture {
 public:
  DirectorFixture() {
    const auto add_stage = [this](const std::string& of, int replica, const std::string& sink) {
      stages.push_back(&AddProbe("stage " + std::to_string(stages.size())));
      config.stages.push_back(stages.back()->As<Stage>());
      config.names[stages.back()->actor().address()] = {
          .kind = ActorKind::kStage, .replica = replica, .of = of};
      config.sinks.push_back(sink);
    };
    add_stage("vision.s0", 0, "");
    add_stage("language.s0", 0, "language");
    add_stage("language.s0", 1, "language");
    add_stage("audio.s0", 0, "audio");
    for (int u = 0; u < 3; ++u) {
      updates.push_back(&AddProbe("update " + std::to_string(u)));
      config.updates.push_back(updates.back()->As<Update>());
      config.names[updates.back()->actor().address()] = {.kind = ActorKind::kUpdate, .of = "m"};
    }
    config.feeds = {feed.As<Feed>()};
    config.phases = {phase.As<Phase>()};
    config.shards = {{devices.As<LockStep>(), {{{3, {0}}, {5, {1}}}}},
                     {more_devices.As<LockStep>(), {{{8, {3}}}}}};
    config.disk = disk.As<ManifestDisk>();
    config.optimizer.clip_norm = 2.5;
    config.steps = 100;
    config.source = std::make_shared<CountingSource>();
    config.observer = observer;
    config.tensors = std::make_shared<TensorStore>(abort);
    config.abort = abort;
  }

  /// Starts a job of `rounds` rounds; those of `evaluations` train nothing.
  void Start(std::int64_t rounds, const std::vector<std::int64_t>& evaluations = {}) {
    config.rounds = [=](std::int64_t number) -> std::optional<Round> {
      if (number >= rounds) return std::nullopt;
      const auto before = std::ranges::count_if(evaluations, [=](auto r) { return r < number; });
      const bool train = std::ranges::count(evaluations, number) == 0;
      return Round{number, train, number - before, 2, 1.0};
    };
    director = Spawn(RunDirector, config);
    done = Ask<JobDone>(director, RunJob{});
  }
  /// An evaluation only.
  void StartEvaluations(std::int64_t rounds) {
    std::vector<std::int64_t> all;
    for (std::int64_t r = 0; r < rounds; ++r) all.push_back(r);
    Start(rounds, all);
  }
  void Report(std::size_t stage, StageReport report) { Give<RoundBegin>(*stages[stage], report); }
  void ReportAll(std::int64_t round) {
    for (std::size_t i = 0; i < stages.size(); ++i) Report(i, {round, 0, {}});
  }
  /// All of the norm is of "language" but 1 of "vision" for each update.
  void GiveNorm(std::size_t update, std::int64_t round, double value) {
    Give<UpdateRound>(*updates[update],
                      SquaredNorm{round, value, {{"language", value - 1.0}, {"vision", 1.0}}});
  }
  void GiveNorms(std::int64_t round) {
    for (std::size_t u = 0; u < updates.size(); ++u) GiveNorm(u, round, 1.0);
  }
  void FinishUpdates(std::int64_t round) {
    for (Probe* update : updates) Give<ApplyUpdate>(*update, UpdateDone{round, 0});
  }
  void Complete(std::int64_t round) {
    GiveNorms(round);
    FinishUpdates(round);
    ReportAll(round);
  }
  /// The manifest of a checkpoint is on the disk with the run directory.
  void Publish() { Give<PublishManifest>(disk, ManifestPublished{}); }
  void Completed(std::int64_t steps, std::vector<std::string>& complete) {
    const PublishManifest manifest = disk.Received<PublishManifest>().back();
    complete = {manifest.folder + " of " + std::to_string(steps), manifest.text};
  }
  std::size_t RoundsBegun() const { return stages[0]->Count<RoundBegin>(); }

  /// Both lock steps show a tensor of each shard.
  void ShowTensors() {
    Give<ToSet<Inspect>>(devices, FromSet<Inspected>{{{{Named("a")}}, {{Named("b")}}}});
    Give<ToSet<Inspect>>(more_devices, FromSet<Inspected>{{{{Named("c")}}}});
  }
  static TensorPiece Named(const std::string& name) {
    return {name, {1}, {0}, RowsOf({1.0}), true};
  }

  DirectorConfig config;
  std::vector<Probe*> stages;
  std::vector<Probe*> updates;
  Probe& feed = AddProbe("feed");
  Probe& phase = AddProbe("phase");
  Probe& devices = AddProbe("devices");
  Probe& more_devices = AddProbe("more devices");
  Probe& disk = AddProbe("disk");
  std::shared_ptr<Observer> observer = std::make_shared<Observer>();
  Director director;
  std::shared_ptr<Answered<JobDone>> done;
};

}  // namespace

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

TEST_CASE_METHOD(DirectorFixture, "a resumed job begins when every shard has been loaded",
                 "[actors][director]") {
  config.checkpoints.resume = {"step 2", {"vision"}};
  std::vector<std::uint64_t> loaded;
  config.checkpoints.loaded = [&](const std::vector<LoadedShard>& shards) {
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
