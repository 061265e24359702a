// The actors that a director directs, the data and the observer, played by a test.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/director_actor.hpp"
#include "tests/actors/probes.hpp"

namespace troupe {

/// Round r has 4 * (r + 1) valid tokens.
class CountingSource : public InputSource {
 public:
  std::shared_ptr<const Inputs> Assemble(const FeedUnit&, const std::vector<Buffer>&) override {
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
  void OnSlow(std::int64_t step, const SlowProcess& process) override {
    slow.emplace_back(step, process);
  }
  void OnWarning(const std::string& line) override { warnings.push_back(line); }
  std::vector<std::pair<std::int64_t, SlowProcess>> slow;
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
      config.ranks.emplace_back();
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

}  // namespace troupe
