// One device alone: the test plays the lock step, its programs and its queue.
#include "actors/device_actor.hpp"

#include <cmath>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/actors/hand_queue.hpp"
#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// The calls of all programs of a device, and what these do next.
struct ProgramLog {
  std::vector<std::string> calls;  ///< "language.s0 F3", in order
  std::string fails_at;            ///< the call that throws
  double output = 0.0;             ///< added to every output
  std::vector<StateMovedCallback> moves;
  std::vector<double> saved;  ///< the first value of every piece
};

/// Multiplies what it gets by a number of its stage.
class LoggedProgram : public StageProgram {
 public:
  LoggedProgram(const ShardAddress& shard, std::shared_ptr<ProgramLog> log)
      : name_(shard.module + ".s" + std::to_string(shard.pp)),
        factor_(10.0 * (shard.pp + 1)),
        log_(std::move(log)) {}

  ForwardResult Forward(const ForwardPass& pass) override {
    Note("F" + std::to_string(pass.unit));
    return {{Times(pass.inputs.at(0))}, {0.5, 2, 1, 0, 0, 0}, {}};
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    Note("B" + std::to_string(pass.unit) + (pass.split_weights ? " without weights" : ""));
    return {{Times(pass.gradients.at(0))}, {}};
  }
  void BackwardWeights(std::int64_t unit) override { Note("W" + std::to_string(unit)); }
  void Offload(StateMovedCallback done) override {
    Note("offload");
    log_->moves.push_back(std::move(done));
  }
  void Restore(bool moments, StateMovedCallback done) override {
    Note(moments ? "restore all" : "restore");
    log_->moves.push_back(std::move(done));
  }
  ReducedGradients ReduceGradients() override {
    Note("reduce");
    return {factor_ + 0.25, {}};
  }
  void Update(const UpdateStep& step) override { Note("update " + std::to_string(step.step)); }
  std::vector<TensorPiece> Tensors(TensorKind) const override {
    return {{name_ + ".weight", {1}, {0}, RowsOf({factor_}), true}};
  }
  void SetTensors(TensorKind, const std::vector<TensorPiece>&) override {}
  void CopyState(StateMovedCallback done) override {
    Note("copy");
    log_->moves.push_back(std::move(done));
  }
  void PrepareCopies(const ShardAddress* first) override {
    Note("prepare copies" + (first ? " for " + ToString(*first) : ""));
  }
  std::vector<TensorPiece> CopiedTensors(TensorKind) const override {
    return {{name_ + ".weight", {1}, {0}, RowsOf({factor_ + 0.5}), true},
            {name_ + ".other", {1}, {0}, RowsOf({0.0}), false}};
  }
  std::size_t state_bytes() const override { return 0; }

 private:
  void Note(const std::string& call) {
    log_->calls.push_back(name_ + " " + call);
    if (log_->calls.back() == log_->fails_at) {
      throw std::runtime_error("out of memory\n#0 a frame of a backtrace");
    }
  }
  Buffer Times(const Buffer& rows) const {
    auto values = ValuesOf(rows);
    for (double& value : values) value = factor_ * value + log_->output;
    return RowsOf(values);
  }

  std::string name_;
  double factor_;
  std::shared_ptr<ProgramLog> log_;
};

/// Rank 6 with language.s0 as stage 2 and language.s1 as stage 3, of replica 1.
class DeviceFixture : public ActorFixture {
 public:
  DeviceFixture() {
    config.rank = 6;
    for (const int pp : {0, 1}) {
      config.shards[2 + pp] = {.module = "language", .pp = pp, .dp = 1, .rank = 6};
    }
    config.make_program = [log = log](const ShardAddress& shard) {
      return std::make_unique<LoggedProgram>(shard, log);
    };
    config.storage.save = [log = log](const std::vector<StoredPiece>& pieces,
                                      const ShardAddress& shard, const SaveOrder& order) {
      log->calls.push_back("save " + ToString(shard) + " into " + order.folder);
      for (const auto& [kind, piece] : pieces) log->saved.push_back(*piece.value.as<double>());
      return StoredShard{.sha256 = "hash of step " + std::to_string(order.step),
                         .header_sha256 = "",
                         .tensors = {}};
    };
    config.tensors = std::make_shared<TensorStore>(abort);
    config.abort = abort;
  }
  void UseQueue() {
    config.make_queue = [work = work](int rank) { return std::make_unique<HandQueue>(work, rank); };
  }
  void Open() { device = Spawn(RunDevice, std::move(config)); }

  auto Forward(int stage, std::int64_t unit, double value = 1.0) {
    RunForward run;
    run.stage = stage;
    run.pass.unit = unit;
    run.pass.inputs = {RowsOf({value})};
    run.place = {3, unit, false};
    run.samples = {"0008", "0012"};
    return Ask<ForwardDone>(device, run);
  }
  auto Backward(int stage, std::int64_t unit, double value, bool split = false) {
    return Ask<BackwardDone>(device,
                             RunBackward{stage, 0, {unit, {RowsOf({value})}, split}, {}, {}});
  }
  auto Reduce(int stage) { return Ask<GradientsReduced>(device, ReduceGradients{stage, 0, {}}); }
  /// The oldest piece of work on the queue runs to its end.
  void FinishWork() {
    work->RunOne(nullptr);
    Deliver();
  }
  std::vector<std::string> TakeCalls() { return std::exchange(log->calls, {}); }

  using Calls = std::vector<std::string>;
  std::shared_ptr<ProgramLog> log = std::make_shared<ProgramLog>();
  std::shared_ptr<HandWork> work = std::make_shared<HandWork>();
  DeviceConfig config;
  Device device;
};

}  // namespace

TEST_CASE_METHOD(DeviceFixture, "commands run in the order given, on the shard of their stage",
                 "[actors][device]") {
  Open();
  const auto forward = Forward(3, 7, 2.0);
  const auto backward = Backward(2, 4, 3.0, true);
  Ask<BackwardWeightsDone>(device, RunBackwardWeights{2, 0, 4, {}});
  const auto reduced = Reduce(3);
  Ask<ParametersUpdated>(device, UpdateParameters{2, 0, {5, 1.0, 1.0}});
  const auto inspected = Ask<Inspected>(device, Inspect{3, TensorKind::kParameter});
  CHECK(TakeCalls() == Calls{"language.s1 F7", "language.s0 B4 without weights", "language.s0 W4",
                             "language.s1 reduce", "language.s0 update 5"});
  CHECK(ValuesOf(forward->answers.at(0).result.outputs[0]) == std::vector<double>{40});
  CHECK(forward->answers[0].result.loss.tokens == 2);
  CHECK(ValuesOf(backward->answers.at(0).result.gradients[0]) == std::vector<double>{30});
  CHECK(reduced->answers.at(0).result.squared_norm == 20.25);
  CHECK(inspected->answers.at(0).pieces.at(0).name == "language.s1.weight");
}

TEST_CASE_METHOD(DeviceFixture, "a command that throws ends the job and names shard, pass and data",
                 "[actors][device]") {
  log->fails_at = "language.s1 F9";
  SECTION("without a queue") { Open(); }
  SECTION("with a queue") {
    UseQueue();
    Open();
  }
  const auto failed = Forward(3, 9);
  const std::string expected =
      "language.s1 dp1 rank 6 forward of step 3 mb 9 (samples 0008, 0012): out of memory";
  CHECK(failed->errors == Calls{expected});
  CHECK(abort->cause() == expected);
  // Nothing runs any more: later commands fail with the cause.
  CHECK(Forward(2, 9)->errors == Calls{expected});
  CHECK(TakeCalls() == Calls{"language.s1 F9"});
}

TEST_CASE_METHOD(DeviceFixture, "values that are not finite end the job where they appear",
                 "[actors][device]") {
  log->output = std::nan("");
  Open();
  SECTION("of a forward") {
    CHECK_THAT(Forward(2, 0)->errors.at(0),
               Catch::StartsWith("language.s0 dp1 rank 6 forward of step 3 mb 0 (samples 0008, "
                                 "0012): output 0 is not finite"));
  }
  SECTION("of a backward") {
    CHECK_THAT(Backward(3, 5, 1.0)->errors.at(0),
               Catch::StartsWith("language.s1 dp1 rank 6 backward of microbatch 5: gradient of "
                                 "input 0 is not finite"));
  }
  CHECK(abort->raised());
}

TEST_CASE_METHOD(DeviceFixture, "a program that cannot be made ends the job by its shard",
                 "[actors][device]") {
  config.make_program = [](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
    if (shard.pp == 1) throw std::runtime_error("no such file");
    return nullptr;
  };
  Open();
  CHECK(abort->cause() == "language.s1 dp1 rank 6: cannot set up: no such file");
  CHECK(Forward(3, 0)->errors == Calls{abort->cause()});
}

TEST_CASE_METHOD(DeviceFixture, "on a queue a command is answered when its work has run",
                 "[actors][device]") {
  UseQueue();
  Open();
  const auto first = Forward(2, 0, 1.0);
  const auto second = Forward(2, 1, 2.0);
  CHECK(TakeCalls() == Calls{"language.s0 F0", "language.s0 F1"});
  CHECK(first->pending());
  FinishWork();
  CHECK(ValuesOf(first->answers.at(0).result.outputs[0]) == std::vector<double>{10});
  CHECK(second->pending());
  FinishWork();
  CHECK(ValuesOf(second->answers.at(0).result.outputs[0]) == std::vector<double>{20});
}

TEST_CASE_METHOD(DeviceFixture, "at most two commands are on a lane of the queue",
                 "[actors][device]") {
  UseQueue();
  Open();
  for (const std::int64_t unit : {0, 1, 2, 3}) Forward(2, unit);
  CHECK(TakeCalls() == Calls{"language.s0 F0", "language.s0 F1"});
  FinishWork();
  CHECK(TakeCalls() == Calls{"language.s0 F2"});
  FinishWork();
  CHECK(TakeCalls() == Calls{"language.s0 F3"});
}

TEST_CASE_METHOD(DeviceFixture, "commands start in the order in which they came on either lane",
                 "[actors][device]") {
  UseQueue();
  Open();
  SECTION("a reduction runs concurrently with the passes") {
    Forward(2, 0);
    Forward(2, 1);
    Reduce(3);  // on the lane of collectives, which is empty
    CHECK(TakeCalls() == Calls{"language.s0 F0", "language.s0 F1", "language.s1 reduce"});
  }
  SECTION("but not before a pass that came first") {
    for (const std::int64_t unit : {0, 1, 2}) Forward(2, unit);
    Reduce(3);
    CHECK(TakeCalls() == Calls{"language.s0 F0", "language.s0 F1"});
    FinishWork();
    CHECK(TakeCalls() == Calls{"language.s0 F2", "language.s1 reduce"});
  }
}

TEST_CASE_METHOD(DeviceFixture, "a shard is saved when nothing else is under way",
                 "[actors][device]") {
  UseQueue();
  Open();
  Forward(2, 0);
  Reduce(3);
  const auto saved = Ask<ShardStored>(device, SaveShard{3, {"step 8", 8}, 8});
  const auto later = Forward(2, 1);
  TakeCalls();
  FinishWork();
  CHECK(TakeCalls().empty());
  FinishWork();
  CHECK(TakeCalls() == Calls{"save language.s1 dp1 rank 6 into step 8", "language.s0 F1"});
  CHECK(saved->answers.at(0).stored.sha256 == "hash of step 8");
  CHECK(later->pending());
}

TEST_CASE_METHOD(DeviceFixture, "a state that is being copied does not leave, while passes run",
                 "[actors][device]") {
  if (GENERATE(false, true)) UseQueue();
  Open();
  const auto copied = Ask<StateCopied>(device, CopyState{3, 8, 8});
  const auto left = Ask<StateOffloaded>(device, OffloadState{3, 8, 0});
  const auto other = Ask<StateOffloaded>(device, OffloadState{2, 8, 0});
  Forward(3, 0);
  CHECK(TakeCalls() == Calls{"language.s1 copy", "language.s0 offload", "language.s1 F0"});
  log->moves.at(0)({1, 2, ""});
  Deliver();
  CHECK(TakeCalls() == Calls{"language.s1 offload"});
  CHECK(copied->answers.size() == 1);
  CHECK(left->pending());
  log->moves.at(2)({3, 4, ""});
  log->moves.at(1)({3, 4, "the copy failed"});
  Deliver();
  CHECK(left->answers.size() == 1);
  CHECK(other->errors.size() == 1);
}

TEST_CASE_METHOD(DeviceFixture, "a state that is away is copied when all of it has returned",
                 "[actors][device]") {
  Open();
  Ask<StateOffloaded>(device, OffloadState{3, 8, 0});
  const auto copied = Ask<StateCopied>(device, CopyState{3, 8, 8});
  log->moves.at(0)({1, 2, ""});
  Deliver();
  Ask<StateRestored>(device, RestoreState{3, 8, 0, false});
  log->moves.at(1)({2, 3, ""});
  Deliver();
  CHECK(TakeCalls() == Calls{"language.s1 offload", "language.s1 restore"});
  Ask<StateOffloaded>(device, OffloadState{3, 8, 1});
  log->moves.at(2)({3, 4, ""});
  Deliver();
  const auto restored = Ask<StateRestored>(device, RestoreState{3, 8, 1, true});
  TakeCalls();
  CHECK(copied->pending());
  log->moves.at(3)({4, 5, ""});
  Deliver();
  CHECK(restored->answers.size() == 1);
  CHECK(TakeCalls() == Calls{"language.s1 copy"});
  log->moves.at(4)({5, 6, ""});
  Deliver();
  CHECK(copied->answers.size() == 1);
}

TEST_CASE_METHOD(DeviceFixture, "a copy is saved by the writer thread, with the values it had",
                 "[actors][device]") {
  Open();
  Ask<StateCopied>(device, CopyState{3, 8, 8});
  log->moves.at(0)({1, 2, ""});
  Deliver();
  const auto saved = Ask<ShardStored>(device, SaveShard{3, {"step 8", 8}, 8, true});
  CHECK(log->saved == std::vector<double>{20.5, 20.5, 20.5});  // of each kind, those it owns
  REQUIRE(saved->answers.size() == 1);
  CHECK(saved->answers[0].stored.sha256 == "hash of step 8");
  log->saved.clear();
  Ask<ShardStored>(device, SaveShard{3, {"step 9", 9}, 9, false});
  CHECK(log->saved == std::vector<double>{20.0, 20.0, 20.0});  // the state itself
}

TEST_CASE_METHOD(DeviceFixture, "a replica makes the mirror of another shard, and no file",
                 "[actors][device]") {
  const ShardAddress first = {.module = "language", .pp = 1, .rank = 2};
  config.copies = true;
  config.mirrored[3] = first;
  Open();
  CHECK(TakeCalls() ==
        Calls{"language.s0 prepare copies", "language.s1 prepare copies for " + ToString(first)});
  const auto mirrored =
      Ask<ShardStored>(device, SaveShard{3, {"memory 8", 8, true, true}, 8, true});
  CHECK(TakeCalls() == Calls{"save " + ToString(first) + " into memory 8"});
  REQUIRE(mirrored->answers.at(0).made.size() == 1);
  CHECK(mirrored->answers[0].stored == StoredShard{});
  CHECK(mirrored->answers[0].made[0].rank == 2);
  CHECK(mirrored->answers[0].made[0].stage == 3);
  CHECK(mirrored->answers[0].made[0].stored.sha256 == "hash of step 8");
  const auto written = Ask<ShardStored>(device, SaveShard{3, {"step 8", 8}, 8, true});
  CHECK(TakeCalls().empty());
  CHECK(written->answers.at(0).stored == StoredShard{});
  CHECK(written->answers[0].made.empty());
}

TEST_CASE_METHOD(DeviceFixture, "work that the device itself fails at is named with its words",
                 "[actors][device]") {
  UseQueue();
  work->FailAt("language.s0/microbatch 1/forward");
  Open();
  const auto good = Forward(2, 0);
  const auto bad = Forward(2, 1);
  FinishWork();
  CHECK(good->answers.size() == 1);
  FinishWork();
  CHECK(bad->errors == Calls{"language.s0 dp1 rank 6 forward of step 3 mb 1 (samples 0008, "
                             "0012): the device caught fire"});
  CHECK(abort->cause() == bad->errors.at(0));
}

TEST_CASE_METHOD(DeviceFixture, "a move of state is answered when its copies have run",
                 "[actors][device]") {
  Open();
  const auto offloaded = Ask<StateOffloaded>(device, OffloadState{2, 0, 0});
  const auto restored = Ask<StateRestored>(device, RestoreState{3, 0, 0, true});
  CHECK(Forward(3, 0)->answers.size() == 1);  // other commands run meanwhile
  CHECK(TakeCalls() == Calls{"language.s0 offload", "language.s1 restore all", "language.s1 F0"});
  CHECK(offloaded->pending());
  log->moves.at(1)({1, 2, ""});
  Deliver();
  CHECK(restored->answers.size() == 1);
  CHECK(offloaded->pending());
  log->moves.at(0)({3, 4, "the copy broke"});
  Deliver();
  const std::string expected = "language.s0 dp1 rank 6 offload of window 0: the copy broke";
  CHECK(offloaded->errors == Calls{expected});
  CHECK(abort->cause() == expected);
}

TEST_CASE_METHOD(DeviceFixture, "a move of a shard that the device does not hold ends the job",
                 "[actors][device]") {
  SECTION("in real time") {}
  SECTION("in virtual time") {
    config.takes_ns = [](WorkKind, int, std::int64_t) { return 1; };
  }
  Open();
  CHECK(Ask<StateOffloaded>(device, OffloadState{5, 0, 0})->errors.size() == 1);
  CHECK_THAT(abort->cause(), Catch::StartsWith("rank 6 offload of window 0: "));
  CHECK(Ask<StateRestored>(device, RestoreState{5, 0, 0, true})->errors.size() == 1);
}

TEST_CASE_METHOD(DeviceFixture, "rows of an exchange become those that its plan names",
                 "[actors][device]") {
  config.groups[3] = std::move(MakeLocalGroup(1, abort).front());
  Open();
  auto plan = std::make_shared<ExchangePlan>();
  plan->moves = {{0, 0, {1, 3}, {0, 2}}, {0, 0, {0, 1}, {2, 3}}};
  plan->rows_out = {3};
  plan->row_shape = {1};
  plan->dtype = DType::kFloat64;
  const auto done =
      Ask<ExchangeDone>(device, RunExchange{2, 3, 0, 0, plan, {RowsOf({100}), RowsOf({200, 201})}});
  CHECK(ValuesOf(done->answers.at(0).rows) == std::vector<double>{200, 201, 100});
}

TEST_CASE_METHOD(DeviceFixture, "in virtual time work is answered when its stated time is over",
                 "[actors][device]") {
  config.takes_ns = [](WorkKind kind, int, std::int64_t) {
    return kind == WorkKind::kForward ? 100 : 30;
  };
  Open();
  const auto forward = Forward(2, 0);
  const auto backward = Backward(3, 0, 1.0);
  Advance(99);
  CHECK(forward->pending());
  Advance(1);
  CHECK(forward->answers.at(0).busy_ns == 100);
  CHECK(backward->pending());  // it begins when the forward ends
  Advance(30);
  CHECK(backward->answers.at(0).busy_ns == 30);
}

}  // namespace troupe
