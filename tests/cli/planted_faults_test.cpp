// Faults planted in the programs of a real job, in every placement: the job ends with the cause,
// although the faulty rank's peers wait for it in a collective.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <catch2/catch.hpp>

#include "app/rounds.hpp"
#include "app/run_directory.hpp"
#include "app/run_job.hpp"
#include "app/train_observer.hpp"
#include "checkpoint/safetensors.hpp"
#include "configs/loader.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/reference.hpp"
#include "modules/wrapped_program.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

enum class Fault {
  kFactory,
  kForward,
  kBackward,
  kReduce,
  kUpdate,
  kForeign,  ///< something that is no std::exception
  kNanOutput,
  kNanGradient,
  kNanParameterGradient
};

/// A copy whose first element is no number; other holders of the bytes must not see it.
Buffer Poisoned(const Buffer& buffer) {
  Buffer copy = Buffer::Allocate(buffer.shape(), buffer.dtype());
  std::copy_n(buffer.data(), buffer.num_bytes(), copy.data());
  *copy.as<float>() = std::numeric_limits<float>::quiet_NaN();
  return copy;
}

class FaultyProgram : public WrappedProgram {
 public:
  FaultyProgram(std::unique_ptr<StageProgram> inner, Fault fault)
      : WrappedProgram(std::move(inner)), fault_(fault) {
    ThrowIf(Fault::kFactory);
  }
  ForwardResult Forward(const ForwardPass& pass) override {
    if (fault_ == Fault::kForeign) throw 42;
    ThrowIf(Fault::kForward);
    ForwardResult result = program->Forward(pass);
    if (fault_ == Fault::kNanOutput) result.outputs.at(0) = Poisoned(result.outputs.at(0));
    return result;
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    ThrowIf(Fault::kBackward);
    BackwardResult result = program->Backward(pass);
    if (fault_ == Fault::kNanGradient) result.gradients.at(0) = Poisoned(result.gradients.at(0));
    return result;
  }
  ReducedGradients ReduceGradients() override {
    ThrowIf(Fault::kReduce);
    ReducedGradients done = program->ReduceGradients();
    if (fault_ == Fault::kNanParameterGradient) done.squared_norm = std::nan("");
    return done;
  }
  void Update(const UpdateStep& step) override {
    ThrowIf(Fault::kUpdate);
    program->Update(step);
  }

 private:
  void ThrowIf(Fault fault) const {
    if (fault_ == fault) throw std::runtime_error("device on fire\nand a second line");
  }

  Fault fault_;
};

/// The shard that is faulty.
struct FaultTarget {
  std::string config;
  std::string module;
  int pp = 0;
  int tp = 0;
  int dp = 0;
};

/// Ends this program if a job hangs: the default action of SIGALRM.
struct Watchdog {
  Watchdog() { alarm(60); }
  ~Watchdog() { alarm(0); }
};

JobSetup SetupOf(const std::string& path, const RunFolder& folder) {
  static const Compute compute = SetupCompute();
  std::vector<std::string> settings;
  for (const std::string& argument : folder.Arguments("train", path)) {
    if (argument.find('=') != std::string::npos) settings.push_back(argument);
  }
  JobSetup setup;
  setup.plan = std::make_shared<const JobPlan>(LoadConfig(path, settings).config);
  setup.source = OpenInputs(setup.plan->config());
  setup.rounds = TrainingPlan(setup.plan->config(), 0);
  return setup;
}

struct Unwatched : JobObserver {
  void OnRound(const RoundResult&) override {}
};

/// What a job says that has `fault` at `target`.
std::string FailureOf(const FaultTarget& target, Fault fault) {
  const Watchdog watchdog;
  const RunFolder folder;
  JobSetup setup = SetupOf(target.config, folder);
  setup.observer = std::make_shared<Unwatched>();
  setup.wrap_programs = [&](ProgramFactory make) -> ProgramFactory {
    return [=](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      auto program = make(shard);
      const bool here = shard.module == target.module && shard.pp == target.pp &&
                        shard.tp == target.tp && shard.dp == target.dp;
      if (!here) return program;
      return std::make_unique<FaultyProgram>(std::move(program), fault);
    };
  };
  return RunInProcess(setup).text;
}

/// One member of a tensor parallel group, so that its peers are left alone in a collective.
const std::vector<FaultTarget> kTargets = {{"configs/shapes.toml", "language", 0, 1, 0},
                                           {"configs/shapes_colocated.toml", "language", 0, 1, 0},
                                           {"configs/shapes_inline.toml", "language", 0, 1, 0}};

}  // namespace

TEST_CASE("a program that throws ends the job with stage, rank, work and cause", "[cli]") {
  for (const FaultTarget& target : kTargets) {
    INFO(target.config);
    const std::string who = "language.s0 dp0 tp1 rank 1 ";
    CHECK(FailureOf(target, Fault::kForward) ==
          who + "forward of step 1 mb 0 (sample a): device on fire");
    CHECK(FailureOf(target, Fault::kBackward) ==
          who + "backward of step 1 mb 0 (sample a): device on fire");
    CHECK(FailureOf(target, Fault::kReduce) ==
          who + "gradient reduction of step 1: device on fire");
    CHECK(FailureOf(target, Fault::kUpdate) == who + "parameter update of step 1: device on fire");
  }
}

TEST_CASE("a program that cannot be made ends the job with shard and cause", "[cli]") {
  for (const FaultTarget& target : kTargets) {
    INFO(target.config);
    CHECK(FailureOf(target, Fault::kFactory) ==
          "language.s0 dp0 tp1 rank 1: cannot set up: device on fire");
  }
}

TEST_CASE("a program that throws no exception ends the job all the same", "[cli]") {
  CHECK(FailureOf(kTargets[0], Fault::kForeign) ==
        "language.s0 dp0 tp1 rank 1 forward of step 1 mb 0 (sample a): non-standard exception "
        "thrown");
}

TEST_CASE("an output that is not finite is named by stage and microbatch", "[cli]") {
  const std::string cause =
      "forward of step 1 mb 0 (sample a): output 0 is not finite: nan at row 0";
  CHECK(FailureOf(kTargets[0], Fault::kNanOutput) == "language.s0 dp0 tp1 rank 1 " + cause);
  CHECK(FailureOf(kTargets[2], Fault::kNanOutput) == "language.s0 dp0 tp1 rank 1 " + cause);
  const FaultTarget encoder = {"configs/shapes_colocated.toml", "vision", 0, 0, 0};
  CHECK(FailureOf(encoder, Fault::kNanOutput) ==
        "vision.s0 dp0 rank 0 forward of step 1 window 0 (sample a): output 0 is not finite: nan "
        "at row 0");
}

TEST_CASE("a gradient that is not finite is named by stage and microbatch", "[cli]") {
  const std::string cause =
      "backward of step 1 mb 0 (sample a): gradient of input 0 is not finite: nan at row 0";
  CHECK(FailureOf(kTargets[0], Fault::kNanGradient) == "language.s0 dp0 tp1 rank 1 " + cause);
  CHECK(FailureOf(kTargets[1], Fault::kNanGradient) == "language.s0 dp0 tp1 rank 1 " + cause);
  const FaultTarget last = {"configs/shapes_inline.toml", "language", 1, 1, 0};
  CHECK(FailureOf(last, Fault::kNanGradient) == "language.s1 dp0 tp1 rank 3 " + cause);
}

TEST_CASE("a parameter's gradient that is not finite is named by stage", "[cli]") {
  for (const FaultTarget& target : kTargets) {
    CHECK(FailureOf(target, Fault::kNanParameterGradient) ==
          "language.s0 dp0 tp1 rank 1 gradient reduction of step 1: a parameter's gradient is not "
          "finite");
  }
}

TEST_CASE("a trace that cannot be kept is reported before anything starts", "[cli]") {
  const Watchdog watchdog;
  const RunFolder folder;
  JobSetup setup = SetupOf("configs/shapes.toml", folder);
  const RunDirectory directory(setup.plan->config().run, "");
  setup.observer =
      std::make_shared<TrainObserver>(setup.plan->config(), directory, 0, 8, /*terminal=*/false);
  setup.trace_folder = folder / "train.json/trace";
  CHECK_THAT(RunInProcess(setup).text, Catch::StartsWith("cannot start: ") &&
                                           Catch::Contains(setup.trace_folder) &&
                                           Catch::Contains("cannot create: Not a directory; ") &&
                                           !Catch::Contains("filesystem error"));
  CHECK(!std::filesystem::exists(directory.File("weights.safetensors")));
}

}  // namespace troupe
